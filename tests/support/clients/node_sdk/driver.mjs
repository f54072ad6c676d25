// Every method of the last written client for Node of generation 2 against a server: node driver.mjs URL FOLDER KEY
// Prints a JSON object: the client's version, how many methods it has, which of them no scenario calls, and how each scenario failed (null if it did not).

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const [url, folder, key] = process.argv.slice(2)
const require = createRequire(`${folder}/driver.js`)
const { Honcho, Peer, Session, SessionContext } = require('@honcho-ai/sdk')
const { version } = JSON.parse(readFileSync(`${folder}/node_modules/@honcho-ai/sdk/package.json`, 'utf8'))
const called = new Set()
const methods = []
const scenarios = {}

for (const kind of [Honcho, Peer, Session, SessionContext])
  for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(kind.prototype))) {
    if (name === 'constructor' || name.startsWith('_') || typeof value !== 'function') continue
    const full = `${kind.name}.${name}`
    methods.push(full)
    kind.prototype[name] = function (...args) {
      called.add(full)
      return value.apply(this, args)
    }
  }

// The constructor creates its workspace by a request that nothing awaits. One that arrives late creates again what was deleted meanwhile.
const { Workspaces } = require('@honcho-ai/core').default
const { getOrCreate } = Workspaces.prototype
const creations = []
Workspaces.prototype.getOrCreate = function (...args) {
  const creation = getOrCreate.apply(this, args)
  creations.push(creation)
  return creation
}
const allCreated = () => Promise.all(creations)

const scenario = (name, run) => (scenarios[name] = run)
const connect = (workspaceId = `w-${randomUUID().slice(0, 12)}`) => new Honcho({ baseURL: url, apiKey: key, workspaceId, maxRetries: 0 })
const every = async (page) => {
  const items = []
  for await (const item of page) items.push(item)
  return items
}
const ids = (items) => items.map((item) => item.id)
const contents = (items) => items.map((item) => item.content)

const TORTOISE = 'I adopted a tortoise named Balthazar last spring.'
const PHYSICS = 'My sister Clara teaches physics in Lyon.'

const told = async () => {
  const memory = connect()
  const [alice, bob] = [await memory.peer('alice'), await memory.peer('bob')]
  const talk = await memory.session('talk')
  await talk.addMessages([alice.message(TORTOISE, { metadata: { from: 'node' } }), bob.message(PHYSICS)])
  const status = await memory.pollDeriverStatus({ timeoutMs: 20000 })
  assert.equal(status.pendingWorkUnits + status.inProgressWorkUnits, 0)
  return { memory, alice, bob, talk }
}

scenario('workspaces', async () => {
  const memory = connect()
  await memory.setMetadata({ plan: 'gold' })
  assert.deepEqual(await memory.getMetadata(), { plan: 'gold' })
  assert.ok((await memory.getWorkspaces({ id: memory.workspaceId })).includes(memory.workspaceId))
  assert.match(memory.toString(), new RegExp(memory.workspaceId))
  await allCreated()
  await memory.deleteWorkspace(memory.workspaceId)
  assert.ok(!(await memory.getWorkspaces({ id: memory.workspaceId })).includes(memory.workspaceId))
})

scenario('peers', async () => {
  const memory = connect()
  const alice = await memory.peer('alice', { metadata: { n: 1 }, config: { observe_me: false } })
  await memory.peer('bob', { metadata: {} })
  assert.deepEqual(ids(await every(await memory.getPeers())), ['alice', 'bob'])
  assert.deepEqual(ids(await every(await memory.getPeers({ metadata: { n: 1 } }))), ['alice'])
  assert.deepEqual(await alice.getMetadata(), { n: 1 })
  await alice.setMetadata({ n: 2 })
  assert.deepEqual(await alice.getMetadata(), { n: 2 })
  assert.equal((await alice.getPeerConfig()).observe_me, false)
  await alice.setPeerConfig({ observe_me: true })
  assert.equal((await alice.getPeerConfig()).observe_me, true)
  assert.match(alice.toString(), /alice/)
})

scenario('sessions', async () => {
  const memory = connect()
  const room = await memory.session('room', { metadata: { floor: 3 } })
  await memory.session('hall', { metadata: {} })
  assert.deepEqual(ids(await every(await memory.getSessions())), ['room', 'hall'])
  assert.deepEqual(await room.getMetadata(), { floor: 3 })
  await room.setMetadata({ floor: 4 })
  assert.deepEqual(await room.getMetadata(), { floor: 4 })
  await room.addPeers(['alice', 'bob'])
  assert.deepEqual(ids(await room.getPeers()).sort(), ['alice', 'bob'])
  await room.setPeerConfig('bob', { observe_me: false, observe_others: true })
  const config = await room.getPeerConfig('bob')
  assert.deepEqual([config.observe_me, config.observe_others], [false, true])
  await room.removePeers('alice')
  assert.deepEqual(ids(await room.getPeers()), ['bob'])
  await room.setPeers(['carol'])
  assert.deepEqual(ids(await room.getPeers()), ['carol'])
  assert.deepEqual(ids(await every(await (await memory.peer('carol')).getSessions())), ['room'])
  assert.match(room.toString(), /room/)
  await room.delete()
  assert.deepEqual(ids(await every(await memory.getSessions())), ['hall'])
})

scenario('messages', async () => {
  const { memory, talk } = await told()
  const messages = await every(await talk.getMessages())
  assert.deepEqual(contents(messages), [TORTOISE, PHYSICS])
  assert.deepEqual([messages[0].peer_id, messages[0].metadata], ['alice', { from: 'node' }])
  // This client sends what it is given as the whole body, so the filters have to say that they are some.
  assert.deepEqual(contents(await every(await talk.getMessages({ filters: { peer_id: 'bob' } }))), [PHYSICS])
  const changed = await memory.updateMessage(messages[0], { seen: true })
  assert.deepEqual([changed.id, changed.metadata], [messages[0].id, { seen: true }])
  const file = new File(['The garden has seven goats.'], 'garden.txt', { type: 'text/plain' })
  assert.deepEqual(contents(await talk.uploadFile(file, 'alice')), ['The garden has seven goats.'])
  assert.equal((await every(await talk.getMessages())).length, 3)
})

scenario('search', async () => {
  const { memory, alice, talk } = await told()
  assert.deepEqual(contents(await memory.search('who teaches physics', { limit: 1 })), [PHYSICS])
  assert.deepEqual(contents(await alice.search('tortoise')), [TORTOISE])
  assert.deepEqual(contents(await talk.search('physics in Lyon', { limit: 1 })), [PHYSICS])
  assert.deepEqual(contents(await memory.search('tortoise physics', { filters: { peer_id: 'bob' } })), [PHYSICS])
})

scenario('memory', async () => {
  const { memory, alice, talk } = await told()
  const status = await memory.getDeriverStatus()
  assert.equal(status.completedWorkUnits, status.totalWorkUnits)
  assert.ok(status.totalWorkUnits >= 2)
  assert.equal((await talk.getDeriverStatus()).totalWorkUnits, status.totalWorkUnits)
  assert.equal((await talk.pollDeriverStatus({ timeoutMs: 5000 })).pendingWorkUnits, 0)
  assert.match(JSON.stringify(await talk.workingRep('alice')), /Balthazar/)
  const context = await talk.getContext({ summary: true, tokens: 500, peerTarget: 'alice', lastUserMessage: 'tortoise' })
  assert.deepEqual(contents(context.messages), [TORTOISE, PHYSICS])
  const turns = context.toOpenAI('bob')
  assert.deepEqual(turns.slice(-2).map((turn) => turn.role), ['user', 'assistant'])
  assert.equal(context.toAnthropic('bob').at(-1).content, PHYSICS)
  assert.equal(context.length, context.messages.length + (context.summary ? 1 : 0))
  assert.equal(typeof context.toString(), 'string')
  const summaries = await talk.getSummaries()
  assert.deepEqual([summaries.shortSummary, summaries.longSummary], [null, null])
  assert.match(await alice.chat('What is the tortoise called?'), /Balthazar/)
  assert.equal(typeof (await alice.card()), 'string')
  const stream = await alice.chat('What is the tortoise called?', { stream: true, sessionId: talk.id })
  let said = ''
  for await (const piece of stream) said += piece
  assert.match(said, /Balthazar/)
})

scenario('mistakes', async () => {
  const { memory, alice } = await told()
  await assert.rejects(alice.chat('Who?', { sessionId: 'nowhere' }), (error) => error.status === 404)
  await assert.rejects(memory.updateMessage('x'.repeat(21), {}, 'talk'), (error) => error.status === 404)
})

// At once: each has a workspace of its own, and the client pauses a second between two looks at the queue.
const results = Object.fromEntries(await Promise.all(Object.entries(scenarios).map(async ([name, run]) =>
  [name, await run().then(() => null, (error) => String(error?.stack ?? error))])))
console.log(JSON.stringify({ client: version, methods: methods.length, uncalled: methods.filter((name) => !called.has(name)), scenarios: results }))
