"""GraphQL APIs: a schema in, one tool per root field out, and every document checked before it is sent."""

from catalog.kinds.graphql.integration import GraphQL

__all__ = ["GraphQL"]
