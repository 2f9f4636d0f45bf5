from models.fleet import entry, heap, jit, tree


def test_where_nothing_can_be_kept_it_is_compiled_all_the_same() -> None:
    made: dict[str, object] = {}
    exec("def more(x): return x + 1", made)  # noqa: S102  (a function without a file has no place to be kept)
    assert jit.entry("int64(int64)", made["more"])(1) == 2  # type: ignore[type-var]


def test_what_is_kept_is_another_one_when_any_source_changed() -> None:
    assert entry.fingerprint((heap,)) != entry.fingerprint((tree,)) != entry.fingerprint((heap, tree))
