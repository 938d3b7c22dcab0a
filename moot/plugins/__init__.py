"""Optional parts of Moot that use only its public modules, one folder each."""
