"""A data task over real tool results: group what the store has, compute statistics, print a table."""

# ruff: noqa: F704, F821  # a script: its last expression is its result, `await` may stand anywhere, tools are given

from collections import Counter, defaultdict
from statistics import mean, median, pstdev

store = tools.petstore.org.main

# Three calls at once; plain calls without await work too, one after the other.
available, pending, inventory = await asyncio.gather(
    store.pet.findPetsByStatus(status=["available"]),
    store.pet.findPetsByStatus(status=["pending"]),
    store.store.getInventory(),
)
pets = available + pending

by_kind = defaultdict(list)
for pet in pets:
    by_kind[pet["category"]["name"]].append(pet)

print(f"{'kind':<12}{'pets':>5}{'available':>11}{'name length (mean ± sd)':>26}  tags")
for kind, group in sorted(by_kind.items(), key=lambda item: -len(item[1])):
    lengths = [len(pet["name"]) for pet in group]
    tags = Counter(tag["name"] for pet in group for tag in pet.get("tags") or [])
    free = sum(pet["status"] == "available" for pet in group)
    spread = f"{mean(lengths):.1f} ± {pstdev(lengths):.1f}"
    print(f"{kind:<12}{len(group):>5}{free:>11}{spread:>26}  {', '.join(tag for tag, _ in tags.most_common(3))}")

try:
    order = f"order {store.store.placeOrder(petId=pets[0]['id'], quantity=1)['id']} placed"
except ToolError as error:
    order = f"not ordered: {error.code}"

{
    "pets": len(pets),
    "inventory": inventory,
    "largest_kind": max(by_kind, key=lambda kind: len(by_kind[kind])),
    "median_pets_per_kind": median(map(len, by_kind.values())),
    "order": order,
}
