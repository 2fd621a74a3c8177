"""Policy conditions: the same profile of CEL as the service, see packages/policy."""
