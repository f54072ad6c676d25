// Workspaces, peers, sessions, scopes and messages: written, read back, listed, deleted.

import assert from 'node:assert/strict'
import { connect, contents, every, ids, raises, scenario, sdk, settled, statements, unique, until } from './harness.mjs'

const METADATA = { plan: 'gold', seats: 3, tags: ['a', 'b'], deep: { x: null }, blåbær: '🫐' }
const { BadRequestError, ConflictError, NotFoundError, UnprocessableEntityError } = sdk

// A configuration without what is unset.
const said = (value) => JSON.parse(JSON.stringify(value, (_, inner) => (inner === null ? undefined : inner)))

scenario('workspaces_are_described_listed_and_deleted', async () => {
  const honcho = connect()
  await honcho.setMetadata(METADATA)
  await honcho.setConfiguration({ summary: { messagesPerShortSummary: 12 } })
  await honcho.setConfiguration({ reasoning: { enabled: false } })
  const again = connect(honcho.workspaceId)
  assert.deepEqual(await again.getMetadata(), METADATA)
  const both = { summary: { messagesPerShortSummary: 12 }, reasoning: { enabled: false } }
  assert.deepEqual(said(await again.getConfiguration()), both)
  await again.refresh()
  assert.deepEqual([again.metadata, said(again.configuration)], [METADATA, both])

  const run = unique('run')
  const names = []
  for (let number = 0; number < 3; number += 1) {
    names.push(unique('listed'))
    await connect(names.at(-1)).setMetadata({ run })
  }
  const page = await honcho.workspaces({ filters: { metadata: { run } }, size: 2 })
  assert.deepEqual([page.total, page.pages, page.size, page.items], [3, 2, 2, names.slice(0, 2)])
  assert.deepEqual(await every(page), names)
  assert.deepEqual(await every(await honcho.workspaces({ filters: { metadata: { run } }, size: 2, reverse: true })), names.toReversed())

  const session = await honcho.session('talk')
  await raises(ConflictError, honcho.deleteWorkspace(honcho.workspaceId))
  await session.delete()
  await honcho.deleteWorkspace(honcho.workspaceId)
  assert.deepEqual(await every(await connect().workspaces({ filters: { id: honcho.workspaceId } })), [])
  await raises(NotFoundError, connect().deleteWorkspace(honcho.workspaceId))
})

scenario('peers_are_described_and_listed', async () => {
  const honcho = connect()
  const names = ['p0', 'p1', 'p2', 'p3', 'p4']
  for (const [number, name] of names.entries()) await honcho.peer(name, { metadata: { number }, configuration: { observeMe: number !== 3 } })
  const page = await honcho.peers({ size: 2 })
  assert.deepEqual([page.total, page.page, page.pages, page.hasNextPage, ids(page.items)], [5, 1, 3, true, ['p0', 'p1']])
  assert.deepEqual(ids((await page.getNextPage()).items), ['p2', 'p3'])
  assert.deepEqual(ids(await page.toArray()), names)
  assert.deepEqual(ids(await every(await honcho.peers({ size: 2, reverse: true }))), names.toReversed())
  assert.deepEqual(ids(await every(await honcho.peers({ metadata: { number: { gte: 3 } } }))), ['p3', 'p4'])
  const three = await honcho.peer('p3')
  assert.deepEqual([await three.getMetadata(), await three.getConfiguration()], [{ number: 3 }, { observeMe: false }])
  await three.setMetadata({ name: 'Three' })
  await three.setConfiguration({ observeMe: true })
  await three.refresh()
  assert.deepEqual([three.metadata, three.configuration], [{ name: 'Three' }, { observeMe: true }])
  assert.ok(Math.abs(Date.parse(three.createdAt) - Date.now()) < 60_000)
  assert.equal(await three.getCard(), null)
  assert.deepEqual(await three.setCard(['Name: Three']), ['Name: Three'])
  assert.deepEqual([await three.card(), await three.getCard('p1')], [['Name: Three'], null])
  const error = await raises(UnprocessableEntityError, honcho.peers({ filters: { colour: 'red' } }))
  assert.equal(error.status, 422)
})

scenario('sessions_are_described_listed_and_peopled', async () => {
  const honcho = connect()
  const alice = await honcho.peer('alice')
  const names = ['s0', 's1', 's2', 's3']
  for (const name of names) await honcho.session(name, { metadata: { name } })
  assert.deepEqual(ids(await every(await honcho.sessions({ size: 3 }))), names)
  assert.deepEqual(ids(await every(await honcho.sessions({ size: 3, reverse: true }))), names.toReversed())
  assert.deepEqual(ids(await every(await honcho.sessions({ metadata: { name: 's2' } }))), ['s2'])
  const session = await honcho.session('s1', { configuration: { summary: { enabled: false } }, peers: ['alice', ['bob', { observeOthers: true }]] })
  await session.setConfiguration({ reasoning: { enabled: true } })
  await session.setMetadata({ topic: 'tea' })
  assert.deepEqual(said(await session.getConfiguration()), { summary: { enabled: false }, reasoning: { enabled: true } })
  assert.deepEqual(await session.getMetadata(), { topic: 'tea' })
  await session.refresh()
  assert.deepEqual([session.metadata, session.isActive], [{ topic: 'tea' }, true])

  const members = async () => ids(await session.peers()).toSorted()
  assert.deepEqual(await members(), ['alice', 'bob'])
  await session.addPeers(['carol', alice])
  assert.deepEqual(await members(), ['alice', 'bob', 'carol'])
  assert.deepEqual(said(await session.getPeerConfiguration('bob')), { observeOthers: true })
  await session.setPeerConfiguration('bob', { observeMe: false })
  assert.deepEqual(said(await session.getPeerConfiguration('bob')), { observeOthers: true, observeMe: false })
  await session.removePeers(['carol', 'nobody'])
  assert.deepEqual(await members(), ['alice', 'bob'])
  await session.setPeers([alice, ['dave', { observeMe: true }]])
  assert.deepEqual(await members(), ['alice', 'dave'])
  await (await honcho.session('s3')).addPeers(alice)
  assert.deepEqual(ids(await every(await alice.sessions())), ['s1', 's3'])
  assert.deepEqual(ids(await every(await alice.sessions({ size: 1, reverse: true }))), ['s3', 's1'])
  await raises(NotFoundError, session.getPeerConfiguration('nobody'))
  const watchers = Array.from({ length: 11 }, (_, number) => [`watcher${number}`, { observeOthers: true }])
  await raises(BadRequestError, session.addPeers(watchers))
})

scenario('messages_are_stored_paged_cloned_and_deleted', async () => {
  const honcho = connect()
  const [alice, bob] = [await honcho.peer('alice'), await honcho.peer('bob')]
  const session = await honcho.session('talk')
  const texts = Array.from({ length: 13 }, (_, number) => `number ${number} 🐢`)
  const stored = await session.addMessages(texts.map((text, number) => [alice, bob][number % 2].message(text, { metadata: { number } })))
  assert.deepEqual(contents(stored), texts)
  const page = await session.messages({ size: 5 })
  assert.deepEqual([page.total, page.pages, page.length], [13, 3, 5])
  const listed = await every(page)
  assert.deepEqual(listed.map((m) => [m.id, m.content, m.peerId, m.sessionId, m.metadata, m.tokenCount, m.createdAt]),
    stored.map((m) => [m.id, m.content, m.peerId, 'talk', m.metadata, m.tokenCount, m.createdAt]))
  assert.deepEqual(ids(await every(await session.messages({ size: 5, reverse: true }))), ids(stored).toReversed())
  assert.deepEqual(ids(await every(await session.messages({ peer_id: 'bob', metadata: { number: { gt: 8 } } }))), [stored[9].id, stored[11].id])
  const when = new Date(Date.UTC(2023, 6, 4, 12))
  const [dated] = await session.addMessages(alice.message('dated', { createdAt: when }))
  assert.equal(Date.parse(dated.createdAt), when.getTime())
  assert.equal((await session.getMessage(dated.id)).content, 'dated')
  assert.deepEqual((await session.updateMessage(dated, { seen: true })).metadata, { seen: true })
  assert.deepEqual((await session.getMessage(dated.id)).metadata, { seen: true })
  const error = await raises(NotFoundError, session.getMessage('x'.repeat(21)))
  assert.ok(error.message.includes('x'.repeat(21)), error.message)
  await raises(UnprocessableEntityError, session.addMessages(Array.from({ length: 101 }, () => alice.message('x'))))

  const clone = await session.clone(stored[2].id)
  assert.deepEqual(contents(await every(await clone.messages())), texts.slice(0, 3))
  assert.equal((await (await session.clone()).messages()).total, 14)
  await session.delete()
  await raises(NotFoundError, session.delete())
  assert.ok(!ids(await every(await honcho.sessions())).includes('talk'))
})

scenario('scopes_bound_what_is_recalled', async () => {
  const honcho = connect()
  const alice = await honcho.peer('alice')
  const [farm, clinic] = [await honcho.session('farm'), await honcho.session('clinic')]
  await farm.addMessages(alice.message('I keep seven goats on the island.'))
  await clinic.addMessages(alice.message('My left knee hurts since the marathon.'))
  await settled(honcho)
  const scope = await honcho.scope('private', { metadata: { colour: 'green' } })
  await honcho.scope('another')
  assert.deepEqual([scope.id, scope.metadata], ['private', { colour: 'green' }])
  assert.deepEqual((await honcho.getScope('private')).metadata, { colour: 'green' })
  await raises(NotFoundError, honcho.getScope('typo'))
  assert.deepEqual(ids(await every(await honcho.scopes({ size: 1 }))), ['private', 'another'])
  assert.deepEqual(ids(await every(await honcho.scopes({ reverse: true }))), ['another', 'private'])
  await scope.addSessions([farm])
  await until(async () => (await scope.status()).backfillStatus.farm?.state === 'completed', 'the copying')
  assert.equal((await scope.status()).backfillStatus.farm.docsCopied, 1)
  await honcho.session('new', { scopes: [scope] })
  assert.deepEqual(ids(await every(await scope.sessions())), ['farm', 'new'])
  assert.deepEqual(ids(await every(await scope.sessions({ reverse: true, size: 1 }))), ['new', 'farm'])
  assert.deepEqual(statements(await alice.representation({ scope })), ['I keep seven goats on the island.'])
  assert.deepEqual(statements(await alice.representation({ sessions: [clinic] })), ['My left knee hurts since the marathon.'])
  assert.equal(statements(await alice.representation()).length, 2)
  assert.deepEqual(new Set((await honcho.search('goats knee', { scope: 'private' })).map((m) => m.sessionId)), new Set(['farm']))
  assert.ok(!(await farm.context({ peerTarget: 'alice', scope })).peerRepresentation.includes('knee'))
  await raises(NotFoundError, honcho.search('goats', { scope: 'typo' }))
  await raises(NotFoundError, scope.addSessions(['nowhere']))
  await scope.removeSession(farm)
  assert.deepEqual(ids(await every(await scope.sessions())), ['new'])
  await until(async () => (await alice.representation({ scope })) === '', 'the forgetting')
})
