"""Speed and memory of prunus beside its peers; see README.md in this folder."""
