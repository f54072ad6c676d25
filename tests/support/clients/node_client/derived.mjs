// What the client sees of conclusions that rest on others: `node derived.mjs URL FOLDER`. Reads what `support.clients.derived.seeded` made.
// Whatever is not as expected ends it with an error.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { connect, every, ids, raises, sdk, secondPages } from './harness.mjs'

const { workspace, said, derived, pattern, conflict } = JSON.parse(readFileSync(0, 'utf8'))
const [goats, bees, sold] = said
const honcho = connect(workspace)
const alice = await honcho.peer('alice')
const view = alice.conclusions
const everything = await every(await view.list({ size: 4, reverse: true }))
assert.deepEqual(ids(everything), [...said, ...derived, pattern, conflict])
assert.deepEqual(
  everything.map((x) => [x.level, x.sourceIds, x.timesDerived]),
  [
    ...said.map(() => ['explicit', null, 1]),
    ...derived.map((_, number) => ['deductive', [goats, bees], number + 1]),
    ['inductive', [bees, ...derived], 1],
    ['contradiction', [goats, sold], 1],
  ],
)
const newest = [conflict, ...derived.toReversed()]
assert.deepEqual(ids(await every(await view.derived(goats))), newest)
await secondPages((options) => view.derived(goats, options), newest, 'what rests on one')
assert.deepEqual(ids(await every(await view.derived(derived[0]))), [pattern])
assert.deepEqual((await view.get(conflict)).sourceIds, [goats, sold])
assert.deepEqual(new Set(ids(await honcho.conclusions.getMany([goats, sold]))), new Set([goats, sold]))
for (const [level, members] of [['deductive', derived], ['inductive', [pattern]], ['contradiction', [conflict]]]) {
  assert.deepEqual(ids(await every(await view.list({ filters: { level }, reverse: true }))), members)
}
const both = { source_ids: { contains: bees }, level: 'inductive' }
assert.deepEqual(ids(await every(await honcho.conclusions.list({ filters: both }))), [pattern])
await raises(sdk.UnprocessableEntityError, view.list({ filters: { source_ids: { contains: 3 } } }))
await raises(sdk.NotFoundError, alice.conclusionsOf('bob').get(pattern))
const { evidence } = await alice.chat('Which kind of animals does Alice keep?', { includeEvidence: true })
const known = new Map(everything.map((x) => [x.id, [x.level, x.sourceIds ?? []]]))
for (const x of evidence.conclusions) assert.deepEqual([x.level, x.source_ids], known.get(x.id))
assert.ok(evidence.conclusions.some((x) => derived.includes(x.id)), 'what rests on others is read as well')
console.log(JSON.stringify('as expected'))
