// The client and a server that takes its time: `node slow.mjs URL FOLDER PLACE`, where files are made in PLACE.
// The server is that of `e2e.test_streaming`, see `e2e.published_client.slow`. Whatever is not as expected ends this with an error.

import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect, raises, sdk, until } from './harness.mjs'

const place = process.argv[4]
const WHOLE = 'first and second'
let number = 0
const fresh = () => join(place, `node-${(number += 1)}`)
const touch = (path) => writeFileSync(path, '')
const there = fresh()
touch(there)
const alice = (further = {}) => connect('w', { timeout: 60_000, ...further }).peer('alice')
const patient = await alice({ maxRetries: 3 })
// Until there is room again.
const free = () =>
  until(async () => {
    try {
      return (await patient.chat(there)) === WHOLE
    } catch (error) {
      assert.equal(error.status, 503, error.stack)
      return false
    }
  }, 'room')
const rest = async (pieces) => {
  const found = []
  for (let next = await pieces.next(); !next.done; next = await pieces.next()) found.push(next.value)
  return found
}

// Pieces come as they are made.
let heard = fresh()
let pieces = (await (await alice()).chatStream(heard))[Symbol.asyncIterator]()
assert.equal((await pieces.next()).value, 'first')
assert.equal(existsSync(heard), false)
touch(heard)
assert.deepEqual(await rest(pieces), [' and second'])

// A broken answer does not look complete.
await free()
pieces = (await (await alice()).chatStream('fail'))[Symbol.asyncIterator]()
assert.equal((await pieces.next()).value, 'first')
await assert.rejects(rest(pieces))

// Who finds no room is told so, and tries again after the time that the server names.
await free()
heard = fresh()
pieces = (await (await alice()).chatStream(heard))[Symbol.asyncIterator]()
await pieces.next()
const impatient = await alice()
for (const call of [impatient.chat(there), impatient.chatStream(there)]) {
  const error = await raises(sdk.ServerError, call)
  assert.deepEqual([error.status, error.message.includes('try again')], [503, true])
}
const plain = globalThis.fetch
let refused
const isRefused = new Promise((resolve) => { refused = resolve })
globalThis.fetch = async (...args) => {
  const answer = await plain(...args)
  if (answer.status === 503) refused()
  return answer
}
const asked = patient.chat(there)
await isRefused
touch(heard)
assert.deepEqual(await rest(pieces), [' and second'])
assert.equal(await asked, WHOLE)
globalThis.fetch = plain

// Who does not wait leaves room.
heard = fresh()
await raises(sdk.TimeoutError, (await alice({ timeout: 500 })).chat(heard))
touch(heard)
await free()
console.log(JSON.stringify('as expected'))
process.exit(0) // connections of answers that nobody reads to the end keep it up
