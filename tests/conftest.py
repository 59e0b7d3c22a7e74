"""Makes `oracles` importable from every test: pytest puts the folder of this file on the path."""
