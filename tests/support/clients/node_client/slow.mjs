// The client and a server that takes its time: `node slow.mjs URL FOLDER PLACE`, where files are made in PLACE.
// The server is that of `e2e.test_streaming`, see `support.clients.published_client.slow`. Whatever is not as expected ends this with an error.

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
// What a call gives as soon as there is room for it: that of an answer before is free a moment after that was read.
const withRoom = (call) =>
  until(async () => {
    try {
      return { found: await call() }
    } catch (error) {
      if (error.status !== 503) throw error
      return null
    }
  }, 'room').then(({ found }) => found)
// An answer in pieces, of which the first has come.
const streamed = async (question) => {
  const asking = await alice()
  const pieces = (await withRoom(() => asking.chatStream(question)))[Symbol.asyncIterator]()
  assert.equal((await pieces.next()).value, 'first')
  return pieces
}
const rest = async (pieces) => {
  const found = []
  for (let next = await pieces.next(); !next.done; next = await pieces.next()) found.push(next.value)
  return found
}

// Pieces come as they are made.
let heard = fresh()
let pieces = await streamed(heard)
assert.equal(existsSync(heard), false)
touch(heard)
assert.deepEqual(await rest(pieces), [' and second'])

// A broken answer does not look complete.
await free()
pieces = await streamed('fail')
await assert.rejects(rest(pieces))

// Who finds no room is told so, and tries again after the time that the server names.
await free()
heard = fresh()
pieces = await streamed(heard)
const impatient = await alice()
// One after the other: Node ends the process if a promise is rejected before something awaits it.
for (const call of [() => impatient.chat(there), () => impatient.chatStream(there)]) {
  const error = await raises(sdk.ServerError, call())
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
const hasty = await alice({ timeout: 500 })
await raises(sdk.TimeoutError, withRoom(() => hasty.chat(heard)))
touch(heard)
await free()
console.log(JSON.stringify('as expected'))
process.exit(0) // connections of answers that nobody reads to the end keep it up
