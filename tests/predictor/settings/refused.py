# ruff: noqa: E501  (the lines are what a person reads)
"""Configurations that are refused, and the beginning of the one line that is said of each."""

TARGET = "targets: [{namespace: llm, name: chat, capacity: {concurrency: 40}}]\n"
TESTS = (
    "["
    + ", ".join(
        f"{{prompt: {p}, output: {o}, throughput: {x}, concurrency: {c}}}"
        for p, o, x, c in ((1800, 300, 1.4, 48), (900, 300, 2.4, 80), (1800, 150, 2.2, 60))
    )
    + "]"
)

CASES: dict[str, tuple[str | bytes, str]] = {
    "a number out of bounds": (
        "targets: [{namespace: llm, name: chat, capacity: {concurrency: 0}}]",
        (
            "config.yaml: targets[0].capacity.concurrency: 0 is not greater than 0;"
            " set it to the requests one replica serves at once"
        ),
    ),
    "tokens a second of which nobody could ask": (
        "targets: [{namespace: llm, name: chat, capacity: {concurrency: 4, tokens_in: -5}}]",
        (
            "config.yaml: targets[0].capacity.tokens_in: -5 is not greater than 0; set it to the prompt tokens a second"
            " at the highest load at which a load test met the objectives"
        ),
    ),
    "generated tokens that are no number": (
        "targets: [{namespace: llm, name: chat, capacity: {concurrency: 4, tokens_out: many}}]",
        "config.yaml: targets[0].capacity.tokens_out: 'many' is not a number; set it to the generated tokens a second",
    ),
    "a lease that could be taken while its holder still writes": (
        "leader_election: {enabled: true, renew: 12s}\n" + TARGET,
        (
            "config.yaml: leader_election.renew: 12s and kubernetes.request_timeout, 5s, are together longer than lease,"
            " 15s: a write could still be under way when another replica begins; shorten one or lengthen lease"
        ),
    ),
    "a lease that is over before it is renewed": (
        "leader_election: {enabled: true, retry: 10s}\n" + TARGET,
        (
            "config.yaml: leader_election.retry: 10s is not below renew, 10s: the lease would be over before it is"
            " renewed; a fifth of renew suits"
        ),
    ),
    "one port for two": (
        "external_scaler: {enabled: true, port: 8080}\n" + TARGET,
        "config.yaml: external_scaler.port: 8080 is server.port too; give one of them another",
    ),
    "a lease without a namespace outside a pod": (
        "leader_election: {enabled: true}\nkubernetes: {server: http://127.0.0.1:1, token_file: config.yaml}\n"
        + TARGET,
        (
            "leader_election.namespace: is not set, and this is no pod that has a namespace of its own; set it to where"
            " the Lease is to be"
        ),
    ),
    "a text for a number": (
        "defaults: {maximum: many}",
        "config.yaml: defaults.maximum: 'many' is not a whole number; leave it out for the default, 10",
    ),
    "yes for a number": (
        "defaults: {minimum: yes}",
        "config.yaml: defaults.minimum: true is no number; leave it out for the default, 1",
    ),
    "infinity": (
        "targets: [{namespace: llm, name: chat, capacity: {concurrency: .inf}}]",
        (
            "config.yaml: targets[0].capacity.concurrency: inf is not a finite number;"
            " set it to the requests one replica serves at once"
        ),
    ),
    "a word that is none of the choices": (
        "mode: on",
        "config.yaml: mode: true is not one of 'shadow' or 'control'; start with shadow",
    ),
    "a duration in prose": (
        "loops: {slow: half a minute}",
        "config.yaml: loops.slow: 'half a minute' is no duration; write 30s, 5m, 1h30m, 14d or a number of seconds",
    ),
    "a duration out of bounds": (
        "loops: {slow: 2h}",
        "config.yaml: loops.slow: 2h is not at most 10m; 30s to 1m suits most fleets",
    ),
    "an unknown key": ("loops: {fsat: 5s}", "config.yaml: loops.fsat: unknown key; did you mean fast?"),
    "an unknown key like no other": (
        "log: {colour: red}",
        "config.yaml: log.colour: unknown key; known here: format, level",
    ),
    "an unknown section": ("servr: {port: 80}", "config.yaml: servr: unknown key; did you mean server?"),
    "a missing key": (
        "targets: [{name: chat, capacity: {concurrency: 4}}]",
        "config.yaml: targets[0].namespace: is missing; name its namespace: lower-case letters, digits and -",
    ),
    "no capacity": (
        "mode: control\ntargets: [{namespace: llm, name: chat}]",
        (
            "config.yaml: targets[0].capacity.concurrency: is missing; set it, here or in defaults, to the requests one"
            " replica serves at once"
        ),
    ),
    "two capacities": (
        "targets: [{namespace: llm, name: chat, capacity: {concurrency: 40, knee: 48}}]",
        (
            "config.yaml: targets[0].capacity: concurrency 40 and knee 48 are both given; give one: concurrency is"
            " knee / (1 + headroom)"
        ),
    ),
    "load tests beside a knee": (
        f"targets: [{{namespace: llm, name: chat, capacity: {{knee: 48, load_tests: {TESTS}}}}}]",
        ("config.yaml: targets[0].capacity.knee: 48 is given beside load_tests, which say it too; keep one of them"),
    ),
    "one load test": (
        (
            "targets: [{namespace: a, name: b, capacity: {load_tests: [{prompt: 1, output: 1, throughput: 2,"
            " concurrency: 9}]}}]"
        ),
        (
            "config.yaml: targets[0].capacity.load_tests: 1 load tests: it takes 3, at two lengths of prompts and two"
            " of outputs; add such tests, or give knee and throughput instead"
        ),
    ),
    "load tests that tell nothing of outputs": (
        "targets: [{namespace: a, name: b, capacity: {load_tests: ["
        + ", ".join(f"{{prompt: {p}, output: 100, throughput: 2, concurrency: 9}}" for p in (500, 1000, 2000))
        + "]}}]",
        (
            "config.yaml: targets[0].capacity.load_tests: prompts of 500, 1000, 2000 and outputs of 100, 100, 100"
            " tokens: test longer prompts with the outputs as they are, and the other way round, each at least 1.5"
            " times as long; add such tests, or give knee and throughput instead"
        ),
    ),
    "a load test without output": (
        (
            "targets: [{namespace: a, name: b, capacity: {load_tests: [{prompt: 1, output: 0, throughput: 2,"
            " concurrency: 9}]}}]"
        ),
        (
            "config.yaml: targets[0].capacity.load_tests[0].output: 0 is not greater than 0; write the mean"
            " output length of the test"
        ),
    ),
    "half a price": (
        "targets: [{namespace: a, name: b, capacity: {knee: 4}, quantiles: {miss_cost: 60}}]",
        (
            "config.yaml: targets[0].quantiles.miss_cost: 60 needs quantiles.idle_cost, which is not set; set both or"
            " neither"
        ),
    ),
    "a quantile beside its price": (
        "targets: [{namespace: a, name: b, capacity: {knee: 4}, quantiles: {raise: .9, miss_cost: 60, idle_cost: 3}}]",
        (
            "config.yaml: targets[0].quantiles.raise: 0.9 is given beside miss_cost and idle_cost, which say 0.952;"
            " keep one"
        ),
    ),
    "a pool that is none": (
        "gpu_pools: {h100: 16}\ntargets: [{namespace: a, name: b, capacity: {knee: 4}, gpus: {pool: h200}}]",
        "config.yaml: targets[0].gpus.pool: 'h200' is no entry of gpu_pools; add it there, known: h100",
    ),
    "the same target twice": (
        "targets: [{namespace: a, name: b, capacity: {knee: 4}}, {namespace: a, name: b, capacity: {knee: 4}}]",
        "config.yaml: targets[1].name: 'a/b' is targets[0] already; name each workload once",
    ),
    "two workloads whose series are one": (
        (
            "targets: [{namespace: a, name: b, model: m, capacity: {knee: 4}}, {namespace: a, name: c, model: m,"
            " capacity: {knee: 4}}]"
        ),
        (
            "config.yaml: targets[1].model: 'm' is served by a/b in the same namespace too, and Prometheus cannot tell their"
            " series apart; give one another served model name, or set source.kind to scrape"
        ),
    ),
    "queries that nobody asks": (
        'source: {kind: scrape}\nsignals: {vllm: {in_flight: "sum by (namespace) (x)"}}',
        (
            "config.yaml: signals: queries for vllm have no effect while source.kind is scrape; remove them or set it to"
            " prometheus"
        ),
    ),
    "a name that Kubernetes has not": (
        "targets: [{namespace: llm, name: Chat_1, capacity: {concurrency: 4}}]",
        (
            "config.yaml: targets[0].name: 'Chat_1' does not match ^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$; name the object"
            " to scale: lower-case letters, digits, - and ."
        ),
    ),
    "quantiles the wrong way round": (
        "defaults: {quantiles: {raise: 0.8, lower: 0.9}}",
        (
            "config.yaml: defaults.quantiles.lower: 0.9 is above quantiles.raise, 0.8; the floor would be raised and never"
            " lowered again"
        ),
    ),
    "a quantile that is not forecast": (
        "forecast: {quantiles: [0.5, 0.9]}",
        (
            "config.yaml: defaults.quantiles.raise: 0.975 is above the highest of forecast.quantiles, 0.9; add it there or"
            " lower it"
        ),
    ),
    "quantiles that do not grow": (
        "forecast: {quantiles: [0.5, 0.99, 0.9]}",
        "config.yaml: forecast.quantiles: [0.5, 0.99, 0.9] does not grow; sort it, each value once",
    ),
    "a minimum of zero, which nobody would be woken from": (
        "defaults: {minimum: 0}",
        "config.yaml: defaults.minimum: 0 is not at least 1; leave it out for the default, 1",
    ),
    "a minimum above the maximum": (
        "defaults: {minimum: 5, maximum: 4}",
        "config.yaml: defaults.minimum: 5 is above maximum, 4; lower it or raise maximum",
    ),
    "a fast loop slower than the slow one": (
        "loops: {fast: 1m, slow: 30s}",
        "config.yaml: loops.fast: 1m is longer than loops.slow, 30s; shorten it or lengthen loops.slow",
    ),
    "gaps filled for longer than is looked at": (
        "history: {carry: 30m}\nforecast: {level_window: 20m}",
        (
            "config.yaml: history.carry: 30m is longer than forecast.level_window, 20m; shorten it or lengthen"
            " forecast.level_window"
        ),
    ),
    "a season longer than the history": (
        "history: {span: 2d}\nforecast: {seasons: [1d, 1w]}",
        "config.yaml: forecast.seasons[1]: 1w does not fit history.span, 2d; drop it or raise history.span above it",
    ),
    "an address that is none": (
        "source: {prometheus: {url: 'prometheus:9090'}}",
        (
            "config.yaml: source.prometheus.url: 'prometheus:9090' is no http or https address; write one like"
            " http://prometheus:9090"
        ),
    ),
    "a password in an address": (
        "source: {prometheus: {url: 'http://me:hunter2@p:9090'}}",
        "config.yaml: source.prometheus.url: the address carries credentials; put them in files, see source.prometheus",
    ),
    "an address of a query": (
        "source: {prometheus: {url: 'http://p:9090/?x=1'}}",
        (
            "config.yaml: source.prometheus.url: 'http://p:9090/?x=1' has a query; write the address up to the path, like"
            " http://prometheus:9090"
        ),
    ),
    "two ways into Prometheus": (
        "source: {prometheus: {bearer_token_file: /t, username: me, password_file: /p}}",
        "config.yaml: source.prometheus.bearer_token_file: '/t' is given beside username; keep one of the two",
    ),
    "an engine that is none": (
        "targets: [{namespace: llm, name: chat, capacity: {concurrency: 4}, engine: vlm}]",
        "config.yaml: targets[0].engine: 'vlm' is no engine of the signal catalogue; did you mean vllm?",
    ),
    "an address with the path that is added": (
        "source: {prometheus: {url: 'http://p:9090/api/v1/'}}\n" + TARGET,
        "config.yaml: source.prometheus.url: 'http://p:9090/api/v1/' ends in /api/v1, which is added to it; leave that out",
    ),
    "a query for an engine that is none": (
        "signals: {vlm: {arrivals: up}}",
        "config.yaml: signals.vlm: no such engine;",
    ),
    "a query that loses the targets": (
        "signals: {vllm: {arrivals: sum(up)}}",
        "config.yaml: signals.vllm.arrivals: lacks $by;",
    ),
    "half a credential": (
        "kubernetes: {server: 'https://k:6443'}",
        (
            "config.yaml: kubernetes.server: 'https://k:6443' needs kubernetes.token_file, which is not set; set both or"
            " neither"
        ),
    ),
    "half a certificate": (
        "external_scaler: {enabled: true, cert_file: /tls.crt}",
        (
            "config.yaml: external_scaler.cert_file: '/tls.crt' needs external_scaler.key_file, which is not set; set both"
            " or neither"
        ),
    ),
    "an authority of clients without encryption": (
        "external_scaler: {enabled: true, client_ca_file: /ca.crt}",
        "config.yaml: external_scaler.client_ca_file: '/ca.crt' needs external_scaler.cert_file, which is not set;",
    ),
    "two ways into the cluster": (
        "kubernetes: {server: 'https://k:6443', token_file: /t, kubeconfig: /k}",
        (
            "config.yaml: kubernetes.server: 'https://k:6443' is given beside a kubeconfig or context; keep one of the two"
            " ways"
        ),
    ),
    "a time zone that is none": (
        "forecast: {zone: Mars/Olympus}",
        "config.yaml: forecast.zone: 'Mars/Olympus' is no known time zone; write one like Europe/Berlin or UTC",
    ),
    "a section that is no mapping": (
        "targets: [{namespace: llm, name: chat, capacity: 40}]",
        "config.yaml: targets[0].capacity: 40 is not a mapping of keys; put its keys under it, indented",
    ),
    "a mapping for a list": (
        "targets: {namespace: llm}",
        "config.yaml: targets: this mapping is not a list; leave it out for the default, []",
    ),
    "a list for the whole": (
        "- mode: shadow",
        "config.yaml: is a list, not a mapping; begin with keys like `mode:` and `targets:`",
    ),
    "broken YAML": (
        "mode: shadow\nloops: {fast: 5s\n",
        "config.yaml:3:1: expected ',' or '}', but got '<stream end>' while parsing a flow mapping; correct the YAML there",
    ),
    "a tab": (
        "loops:\n\tfast: 5s\n",
        (
            "config.yaml:2:1: found character '\\t' that cannot start any token while scanning for the next token;"
            " correct the YAML there"
        ),
    ),
    "a number for a key": (
        "1: 2",
        "config.yaml:1:1: the key 1 is no text; put a key in quotes; correct the YAML there",
    ),
    "yes for a key": (
        "loops:\n  on: 30s",
        "config.yaml:2:3: the key on is no text; put a key in quotes; correct the YAML there",
    ),
    "a list for a key": (
        "? [a, b]\n: 3",
        (
            "config.yaml:1:3: the key that is itself a list or a mapping is no text; put a key in quotes;"
            " correct the YAML there"
        ),
    ),
    "a mapping for a key": (
        "log:\n  ? {a: b}\n  : 3",
        (
            "config.yaml:2:5: the key that is itself a list or a mapping is no text; put a key in quotes;"
            " correct the YAML there"
        ),
    ),
    "a number of five thousand digits": (
        f"server: {{port: {'9' * 5000}}}",
        (
            f"config.yaml:1:16: {'9' * 40}... cannot be read: Exceeds the limit (4300 digits) for integer string"
            " conversion: value has 5000 digits; correct the YAML there"
        ),
    ),
    "a day that does not exist": (
        "loops: {slow: 2025-13-45}",
        "config.yaml:1:15: 2025-13-45 cannot be read: month must be in 1..12; correct the YAML there",
    ),
    "a key twice": (
        "mode: shadow\nlog: {}\nmode: control\n",
        "config.yaml:3:1: the key 'mode' is given twice; keep one of them; correct the YAML there",
    ),
    "bytes that are no text": (b"mode: \xff\xfe", "config.yaml: byte 6 is not UTF-8; save the file as UTF-8"),
    "a query for a signal that is none": (
        "signals: {vllm: {arrival: up}}",
        "config.yaml: signals.vllm.arrival: 'arrival' is no signal; did you mean arrivals?",
    ),
}
