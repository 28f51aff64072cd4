"""GraphQL APIs: a schema in, one tool per root field out, and every document checked before it is sent."""
