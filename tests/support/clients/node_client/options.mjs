// Options that the other scenarios do not give: pages of every list, filters of every search, every way to narrow what is known, every
// option of every question.

import assert from 'node:assert/strict'
import { connect, contents, every, ids, raises, scenario, sdk, secondPages, settled, statements, unique, z } from './harness.mjs'

const { UnprocessableEntityError } = sdk
const TORTOISE = 'I adopted a tortoise named Balthazar last spring.'
const TEACHER = 'I teach chemistry at the school by the river.'
const QUESTION = 'What is the name of the tortoise?'
const LEVELS = ['minimal', 'low', 'medium', 'high', 'max']

scenario('every_list_has_pages', async () => {
  const honcho = connect()
  const names = ['n0', 'n1', 'n2', 'n3', 'n4']
  const alice = await honcho.peer('n0')
  for (const name of names.slice(1)) await honcho.peer(name)
  for (const name of names) {
    await honcho.scope(name)
    await honcho.session(name, { peers: [alice], scopes: ['n0'], metadata: { name } })
  }
  const everything = await honcho.getScope('n0')
  const made = await alice.conclusions.create(names.map((name) => ({ content: `Fact ${name}.` })))
  const talk = await honcho.session('n0')
  const said = await talk.addMessages(names.map((name) => alice.message(name)))
  const newest = ids(made).toReversed()
  await secondPages((options) => honcho.peers(options), names, 'peers')
  await secondPages((options) => honcho.sessions(options), names, 'sessions')
  await secondPages((options) => honcho.scopes(options), names, 'scopes')
  await secondPages((options) => alice.sessions(options), names, "a peer's sessions")
  await secondPages((options) => everything.sessions(options), names, "a scope's sessions")
  await secondPages((options) => talk.messages(options), ids(said), 'messages')
  await secondPages((options) => alice.conclusions.list(options), newest, "a pair's conclusions")
  await secondPages((options) => honcho.conclusions.list(options), newest, "a workspace's conclusions")
  const run = unique('run')
  const places = []
  for (let number = 0; number < 5; number += 1) {
    places.push(unique('listed'))
    await connect(places.at(-1)).setMetadata({ run })
  }
  await secondPages((options) => honcho.workspaces({ filters: { metadata: { run } }, ...options }), places, 'workspaces', (id) => id)
  const nothing = await alice.conclusions.derived(made[0].id, { page: 2, size: 7, reverse: true })
  assert.deepEqual([nothing.total, nothing.page, nothing.size, await every(nothing)], [0, 2, 7, []])

  const one = { filters: { metadata: { name: 'n3' } } }
  assert.deepEqual(ids(await every(await honcho.sessions(one))), ['n3'])
  assert.deepEqual(ids(await every(await alice.sessions(one))), ['n3'])
  assert.deepEqual(contents(await every(await talk.messages({ filters: { peer_id: 'n0' }, size: 3, reverse: true }))), names.toReversed())
  assert.deepEqual(await every(await talk.messages({ filters: { peer_id: 'n1' } })), [])
  assert.deepEqual(contents(await every(await honcho.conclusions.list({ filters: { content: { contains: 'n2' } } }))), ['Fact n2.'])
})

scenario('every_way_to_narrow_what_is_known', async () => {
  const owned = ['two books about ships', 'three books about bees', 'four books about clouds', 'five maps of the harbour']
  const [often, second, third, last] = owned.map((what) => `I own ${what}.`)
  const honcho = connect()
  const [alice, bob] = [await honcho.peer('alice'), await honcho.peer('bob')]
  const home = await honcho.session('home', { peers: [alice, ['bob', { observeOthers: true }]] })
  for (let time = 0; time < 3; time += 1) {
    await home.addMessages(alice.message(often))
    await settled(honcho)
  }
  await home.addMessages([second, third, last].map((text) => alice.message(text)))
  await settled(honcho)
  const doors = {
    'a peer': (options) => alice.representation(options),
    'a peer of another': (options) => bob.representation({ target: alice, ...options }),
    'a peer in a session': (options) => alice.representation({ session: home, ...options }),
    'a session': (options) => home.representation('alice', options),
    'a session, of another': (options) => home.representation(bob, { target: 'alice', ...options }),
    conclusions: (options) => alice.conclusions.representation(options),
    'conclusions of another': (options) => bob.conclusionsOf('alice').representation(options),
    "a peer's context": async (options) => (await alice.context(options)).representation,
    "a peer's context of another": async (options) => (await bob.context({ target: alice, ...options })).representation,
    "a session's context": async (options) => (await home.context({ peerTarget: alice, representationOptions: options })).peerRepresentation,
    "a session's context of another": async (options) =>
      (await home.context({ peerTarget: 'alice', peerPerspective: bob, representationOptions: options })).peerRepresentation,
  }
  for (const [name, door] of Object.entries(doors)) {
    const narrowed = async (options) => statements(await door(options))
    const rare = { includeMostFrequent: false }
    assert.deepEqual(await narrowed({ maxConclusions: 2, ...rare }), [third, last], `${name}: the latest`)
    assert.deepEqual(await narrowed({ maxConclusions: 2, includeMostFrequent: true }), [often, last], `${name}: half is the most frequent`)
    const one = { searchQuery: 'books about bees', searchTopK: 1, maxConclusions: 1, ...rare }
    assert.deepEqual(await narrowed(one), [second], `${name}: what the question finds`)
    const two = { ...one, searchQuery: 'books about bees clouds', maxConclusions: 2, searchMaxDistance: 1 }
    assert.deepEqual(await narrowed({ ...two, searchTopK: 2 }), [second, third], `${name}: both that are found`)
    assert.equal((await narrowed(two))[1], last, `${name}: the best one, and the latest`)
    const near = { ...one, searchQuery: 'beekeeping' } // shares no word with anything, so that the bound holds
    assert.deepEqual(await narrowed({ ...near, searchMaxDistance: 1 }), [second], `${name}: what is like the question`)
    assert.deepEqual(await narrowed({ ...near, searchMaxDistance: 0 }), [last], `${name}: nothing is as near, the latest is left`)
  }
  assert.deepEqual(contents(await alice.conclusions.query('beekeeping', 1, 1)), [second])
  assert.deepEqual(await alice.conclusions.query('beekeeping', 1, 0), [])
})

// Bob heard alice at home, not at work. Work is in a scope.
async function watched() {
  const honcho = connect()
  const [alice, bob] = [await honcho.peer('alice'), await honcho.peer('bob')]
  const home = await honcho.session('home', { peers: [alice, ['bob', { observeOthers: true }]] })
  const work = await honcho.session('work', { peers: [alice], scopes: ['office'] })
  await home.addMessages(alice.message(TORTOISE, { metadata: { n: 1 } }))
  await work.addMessages(alice.message(TEACHER, { metadata: { n: 2 } }))
  await settled(honcho)
  return { honcho, alice, bob, home, work }
}

scenario('one_peer_knows_another', async () => {
  const { honcho, alice, bob, home, work } = await watched()
  const ofWork = async (options) => statements((await work.context({ peerTarget: 'alice', ...options })).peerRepresentation)
  assert.deepEqual(await ofWork({}), [TORTOISE, TEACHER])
  assert.deepEqual(await ofWork({ limitToSession: true }), [TEACHER])
  assert.deepEqual(await ofWork({ sessions: [work] }), [TEACHER])
  await raises(UnprocessableEntityError, work.context({ peerTarget: 'alice', sessions: [home] }))
  assert.deepEqual(await ofWork({ sessions: ['home', work] }), [TORTOISE, TEACHER])
  assert.deepEqual(await ofWork({ peerPerspective: 'bob' }), [TORTOISE])
  assert.deepEqual(await bob.setCard(['Has a tortoise'], alice), ['Has a tortoise'])
  assert.deepEqual([await bob.card('alice'), await bob.getCard(alice), await bob.card()], [['Has a tortoise'], ['Has a tortoise'], null])

  const heard = await bob.chat(QUESTION, { target: alice, includeEvidence: true })
  assert.match(heard.content, /Balthazar/)
  assert.deepEqual(new Set(heard.evidence.conclusions.map((x) => `${x.observer_id} of ${x.observed_id}`)), new Set(['bob of alice']))
  assert.deepEqual((await bob.chat(QUESTION, { includeEvidence: true })).evidence.conclusions, [], 'of himself he knows nothing')
  assert.doesNotMatch((await alice.chat(QUESTION, { sessions: [work] })) ?? '', /Balthazar/)
  assert.match(await alice.chat(QUESTION, { sessions: ['home'] }), /Balthazar/)

  assert.equal((await honcho.queueStatus()).totalWorkUnits, 2)
  assert.equal((await honcho.queueStatus({ observer: 'bob' })).totalWorkUnits, 1)
  assert.equal((await honcho.queueStatus({ sender: alice, session: home })).totalWorkUnits, 1)
  assert.equal((await honcho.queueStatus({ sender: bob })).totalWorkUnits, 0)
  assert.equal((await home.queueStatus({ observer: bob })).totalWorkUnits, 1)
  assert.equal((await work.queueStatus({ observer: bob })).totalWorkUnits, 0)
})

scenario('a_search_of_a_peer_and_of_a_session_is_filtered', async () => {
  const { alice, bob, home, work } = await watched()
  await home.addMessages([bob.message('A tortoise of mine.'), alice.message('The tortoise again.')])
  assert.deepEqual(contents(await alice.search('tortoise', { filters: { metadata: { n: 1 } } })), [TORTOISE])
  await raises(UnprocessableEntityError, alice.search('tortoise', { filters: { content: 'x' } }))
  assert.equal((await alice.search('tortoise', { limit: 1 })).length, 1)
  assert.equal((await alice.search('tortoise again')).length, 2)
  assert.deepEqual(contents(await home.search('tortoise', { filters: { peer_id: 'bob' } })), ['A tortoise of mine.'])
  assert.deepEqual(contents(await work.search('chemistry school', { filters: { metadata: { n: 2 } }, limit: 3 })), [TEACHER])
})

scenario('a_stream_takes_what_a_whole_answer_takes', async () => {
  const { honcho, alice, bob, home, work } = await watched()
  // What a stream says, which is the same piece by piece and as a whole.
  const heard = async (stream) => {
    const pieces = []
    for await (const piece of stream) pieces.push(piece)
    assert.equal(await stream.getFinalResponse(), pieces.join(''))
    return pieces.join('')
  }
  for (const reasoningLevel of LEVELS) {
    assert.match(await heard(await alice.chatStream(QUESTION, { reasoningLevel, session: home })), /Balthazar/)
    assert.match(await heard(await honcho.chatStream(QUESTION, { reasoningLevel, session: 'home' })), /Balthazar/)
    assert.match(await honcho.chat(QUESTION, { reasoningLevel, session: home }), /Balthazar/)
  }
  for (const asked of [honcho, alice]) {
    const ofOffice = await asked.chatStream('What do I teach at the school?', { scope: 'office', includeEvidence: true })
    assert.match(await heard(ofOffice), /chemistry/)
    assert.deepEqual(contents(ofOffice.evidence.conclusions), [TEACHER])
    assert.doesNotMatch(await heard(await asked.chatStream(QUESTION, { scope: ['office'] })), /Balthazar/)
    const within = await asked.chatStream(QUESTION, { session: 'work', includeEvidence: true })
    await heard(within)
    assert.deepEqual(new Set(within.evidence.messages.map((m) => m.session_id)), new Set(['work']))
  }
  const ofAnother = await bob.chatStream(QUESTION, { target: alice, includeEvidence: true })
  assert.match(await heard(ofAnother), /Balthazar/)
  assert.deepEqual(new Set(ofAnother.evidence.conclusions.map((x) => x.observer_id)), new Set(['bob']))
  assert.doesNotMatch(await heard(await alice.chatStream(QUESTION, { sessions: [work] })), /Balthazar/)
  const Finding = z.object({ answer: z.string() })
  assert.match(Finding.parse(JSON.parse(await heard(await alice.chatStream(QUESTION, { responseFormat: Finding })))).answer, /Balthazar/)
  const form = { type: 'object', properties: { answer: { type: 'string' } }, required: ['answer'] }
  assert.match(JSON.parse(await heard(await honcho.chatStream(QUESTION, { responseFormat: form }))).answer, /Balthazar/)
})

scenario('a_dream_is_of_a_pair', async () => {
  const honcho = connect()
  const [alice, bob] = [await honcho.peer('alice'), await honcho.peer('bob')]
  await honcho.session('talk')
  const said = ['I live in Rome.', 'My favourite colour is blue.', 'I moved to Berlin.']
  const [ofAlice, ofBob] = [alice.conclusions, bob.conclusionsOf(alice)]
  for (const view of [ofAlice, ofBob]) for (const content of said) await view.create({ content, sessionId: 'talk' })
  await honcho.scheduleDream({ observer: 'bob', observed: alice, session: 'talk' })
  await settled(honcho)
  assert.deepEqual(contents(await every(await ofBob.list({ reverse: true }))), said.slice(1))
  assert.deepEqual(contents(await every(await ofAlice.list({ reverse: true }))), said, 'nobody dreamt of these')
})
