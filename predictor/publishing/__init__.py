"""The number for those who ask for it, instead of being written: KEDA, over gRPC; see docs/publishing.md."""
