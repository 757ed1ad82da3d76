module k1s.dev/interop/aggregated

go 1.26.0
