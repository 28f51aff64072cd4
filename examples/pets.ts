// Find the right tools, ask several things at once, and compute an answer from what comes back.
type Pet = { id: number; name: string; category: { name: string }; status: string };

const found = await tools.search("find pets by status", { limit: 3 });
const best = await tools.describe(found.items[0].path);
console.log(best.signature);

const store = tools.petstore.org.main;
const [pets, inventory, ...singles] = await Promise.all([
  store.pet.findPetsByStatus({ status: ["available", "pending"] }) as Promise<Pet[]>,
  store.store.getInventory({}) as Promise<Record<string, number>>,
  ...[1, 2, 3].map((petId) => store.pet.getPetById({ petId }) as Promise<Pet>),
]);

const byKind: Record<string, string[]> = {};
for (const pet of pets) (byKind[pet.category.name] ??= []).push(pet.name);

let order: string;
try {
  order = `order ${(await store.store.placeOrder({ petId: pets[0].id, quantity: 1 })).id} placed`;
} catch (error) {
  if (!(error instanceof ToolError)) throw error;
  order = `not ordered: ${error.code}`;
}

({ tools: found.total, inventory, byKind, firstThree: singles.map((pet) => pet.name), order });
