// Every method of a generated client for Node against a server: node driver.mjs URL FOLDER KEY
// Prints a JSON object: the client's version, how many methods it has and which of them no scenario calls, and how each scenario failed (null if it did not).

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const [url, folder, key] = process.argv.slice(2)
const require = createRequire(`${folder}/driver.js`)
const core = require('@honcho-ai/core')
const Client = core.default ?? core.Honcho
const { version } = JSON.parse(readFileSync(`${folder}/node_modules/@honcho-ai/core/package.json`, 'utf8'))
const newer = Number(version.split('.')[0]) >= 2
const called = new Set()
const scenarios = {}

// A resource of the client whose methods are noted. Of several names, separated by |, the client's own is taken.
const noted = (target, path) =>
  new Proxy({}, {
    get: (_, names) => {
      if (names === 'then') return undefined
      const name = names.split('|').find((one) => one in target)
      const found = target[name]
      if (typeof found !== 'function') return noted(found, `${path}${name}.`)
      called.add(`${path}${name}`)
      return (...args) => found.apply(target, args)
    },
  })

const methods = (target, path) => {
  const own = Object.getOwnPropertyNames(Object.getPrototypeOf(target)).filter((name) => !/^(constructor|_.*)$/.test(name))
  const inner = Object.keys(target).filter((name) => !name.startsWith('_') && typeof target[name] === 'object')
  return [...own.map((name) => path + name), ...inner.flatMap((name) => methods(target[name], `${path}${name}.`))]
}

const connect = (apiKey) => new Client({ baseURL: url, apiKey, maxRetries: 0 })
const resources = (client) => ({ workspaces: client.workspaces, ...(client.keys ? { keys: client.keys } : {}) })
const api = noted(resources(connect(key)), '')
const scenario = (name, run) => (scenarios[name] = run)
const every = async (page) => {
  const items = []
  for await (const item of page) items.push(item)
  return items
}
const ids = (items) => items.map((item) => item.id)
const contents = (items) => items.map((item) => item.content)
const refused = (status, call) => assert.rejects(call, (error) => error.status === status)
const settled = async (w) => {
  for (let tries = 0; tries < 400; tries++) {
    const status = newer ? await api.workspaces.queue.status(w) : await api.workspaces.deriverStatus(w)
    if (status.pending_work_units + status.in_progress_work_units === 0) return status
    await new Promise((done) => setTimeout(done, 50))
  }
  throw new Error('the work does not end')
}

const TORTOISE = 'I adopted a tortoise named Balthazar last spring.'
const section = newer ? 'reasoning' : 'deriver'
const noun = newer ? 'conclusions' : 'observations'

scenario('places_are_described_and_listed', async (w) => {
  const made = await api.workspaces.getOrCreate({ id: w, metadata: { a: 1 } })
  assert.deepEqual([made.id, made.metadata], [w, { a: 1 }])
  const changed = await api.workspaces.update(w, { configuration: { [section]: { enabled: false } } })
  assert.deepEqual(changed.configuration, { [section]: { enabled: false } })
  assert.deepEqual(ids(await every(api.workspaces.list({ filters: { id: w } }))), [w])
  for (const id of ['p0', 'p1', 'p2']) await api.workspaces.peers.getOrCreate(w, { id, metadata: { id } })
  assert.deepEqual(ids(await every(api.workspaces.peers.list(w, { size: 2 }))), ['p0', 'p1', 'p2'])
  assert.deepEqual((await api.workspaces.peers.update(w, 'p0', { metadata: { b: 2 } })).metadata, { b: 2 })
  await refused(422, api.workspaces.peers.getOrCreate(w, { id: 'two words' }))
  await api.workspaces.sessions.getOrCreate(w, { id: 's', peers: { p0: { observe_others: true } } })
  assert.deepEqual((await api.workspaces.sessions.update(w, 's', { metadata: { c: 3 } })).metadata, { c: 3 })
  assert.deepEqual(ids(await every(api.workspaces.sessions.list(w, { filters: { metadata: { c: 3 } } }))), ['s'])
  assert.deepEqual(ids(await every(api.workspaces.peers.sessions.list(w, 'p0'))), ['s'])
  const members = api.workspaces.sessions.peers
  await members.add(w, 's', { p1: {}, p2: {} })
  await members.remove(w, 's', ['p2'])
  assert.deepEqual(new Set(ids(await every(members.list(w, 's')))), new Set(['p0', 'p1']))
  await members.setConfig(w, 's', 'p1', { observe_me: false })
  assert.equal((await members['getConfig|config'](w, 's', 'p1')).observe_me, false)
  await members.set(w, 's', { p2: {} })
  assert.deepEqual(ids(await every(members.list(w, 's'))), ['p2'])
})

scenario('messages_are_stored_listed_cloned_and_deleted', async (w) => {
  const messages = api.workspaces.sessions.messages
  const given = [0, 1, 2, 3, 4].map((number) => ({ peer_id: 'alice', content: `number ${number}` }))
  const stored = await messages.create(w, 's', { messages: given })
  assert.deepEqual(contents(await every(messages.list(w, 's', { size: 2 }))), contents(given))
  assert.deepEqual(ids(await every(messages.list(w, 's', { reverse: true }))), ids(stored).reverse())
  const changed = await messages.update(w, 's', stored[1].id, { metadata: { seen: true } })
  assert.deepEqual(await messages['retrieve|get'](w, 's', stored[1].id), changed)
  const clone = await api.workspaces.sessions.clone(w, 's', { message_id: stored[1].id })
  assert.deepEqual(contents(await every(messages.list(w, clone.id))), ['number 0', 'number 1'])
  const [uploaded] = await messages.upload(w, clone.id, { file: new File(['I like tea.'], 'note.txt', { type: 'text/plain' }), peer_id: 'alice' })
  assert.equal(uploaded.content, 'I like tea.')
  await api.workspaces.sessions.delete(w, 's')
  assert.deepEqual(ids(await every(api.workspaces.sessions.list(w))), [clone.id])
})

scenario('what_was_said_is_found_known_and_answered_from', async (w) => {
  const said = [{ peer_id: 'alice', content: TORTOISE }, { peer_id: 'bob', content: 'My sister Clara teaches physics in Lyon.' }]
  const stored = await api.workspaces.sessions.messages.create(w, 's', { messages: said })
  const status = await settled(w)
  assert.equal(status.completed_work_units, 2)
  assert.deepEqual(ids(await api.workspaces.search(w, { query: 'Balthazar', limit: 1 })), [stored[0].id])
  assert.deepEqual(ids(await api.workspaces.sessions.search(w, 's', { query: 'who teaches physics', limit: 1 })), [stored[1].id])
  assert.deepEqual(ids(await api.workspaces.peers.search(w, 'bob', { query: 'physics' })), [stored[1].id])
  const known = await api.workspaces.peers['workingRepresentation|representation'](w, 'alice', { session_id: 's' })
  assert.equal(typeof known.representation, newer ? 'string' : 'object')
  assert.match(JSON.stringify(known), /Balthazar/)
  const context = await api.workspaces.peers['getContext|context'](w, 'alice')
  assert.match(JSON.stringify(context.representation), /Balthazar/)
  const ofSession = await api.workspaces.sessions['getContext|context'](w, 's', { peer_target: 'alice', tokens: 5000 })
  assert.deepEqual(ids(ofSession.messages), ids(stored))
  assert.match(JSON.stringify(ofSession.peer_representation), /Balthazar/)
  assert.match((await api.workspaces.peers.chat(w, 'alice', { query: 'What is the name of the tortoise?' })).content, /Balthazar/)
  await refused(404, api.workspaces.peers.chat(w, 'nobody', { query: 'What?' }))
  assert.equal((await api.workspaces.sessions.summaries(w, 's')).short_summary, null)
})

scenario('conclusions_cards_and_dreams', async (w) => {
  for (const id of ['alice', 'bob']) await api.workspaces.peers.getOrCreate(w, { id })
  await api.workspaces.sessions.getOrCreate(w, { id: 's' })
  const facts = ['Bob plays the cello.', 'Bob is allergic to peanuts.']
  const pair = { observer_id: 'alice', observed_id: 'bob', session_id: 's' }
  const resource = api.workspaces[noun]
  const made = await resource.create(w, { [noun]: facts.map((content) => ({ content, ...pair })) })
  assert.deepEqual(contents(made), facts)
  const filters = { observer: 'alice', observed: 'bob' }
  assert.deepEqual(ids(await every(resource.list(w, { filters }))), ids(made).reverse())
  assert.deepEqual(contents(await resource.query(w, { query: 'peanuts', top_k: 1, filters })), [facts[1]])
  await resource.delete(w, made[0].id)
  assert.deepEqual(ids(await every(resource.list(w))), [made[1].id])
  await refused(404, resource.delete(w, made[0].id))
  assert.equal((await api.workspaces.peers.card(w, 'alice')).peer_card, null)
  assert.deepEqual((await api.workspaces.peers.setCard(w, 'alice', { peer_card: ['Tall', 'tall'] })).peer_card, ['Tall'])
  if (newer) await api.workspaces.scheduleDream(w, { observer: 'alice', dream_type: 'omni', session_id: 's' })
  else await api.workspaces.triggerDream(w, { observer: 'alice', dream_type: 'consolidate' })
  assert.equal((await settled(w)).total_work_units, 1)
})

scenario('webhooks_keys_and_the_end', async (w) => {
  await api.workspaces.getOrCreate({ id: w })
  const made = await api.workspaces.webhooks.getOrCreate(w, { url: 'https://93.184.215.14/hook' })
  assert.deepEqual(ids(await every(api.workspaces.webhooks.list(w))), [made.id])
  await api.workspaces.webhooks.delete(w, made.id)
  await api.workspaces.webhooks.testEmit(w)
  if (!newer) {
    const own = connect((await api.keys.create({ workspace_id: w })).key)
    assert.equal((await own.workspaces.getOrCreate({ id: w })).id, w)
    await refused(401, own.workspaces.list())
  }
  await api.workspaces.sessions.getOrCreate(w, { id: 's' })
  await api.workspaces.delete(w)
  await refused(404, api.workspaces.delete(w))
})

const results = {}
for (const [name, run] of Object.entries(scenarios)) {
  results[name] = await run(`w-${randomUUID()}`).then(() => null, (error) => error.stack)
}
const all = Object.entries(resources(connect(key))).flatMap(([name, resource]) => methods(resource, `${name}.`))
const uncalled = all.filter((name) => !called.has(name))
console.log(JSON.stringify({ client: version, scenarios: results, methods: all.length, uncalled }))
