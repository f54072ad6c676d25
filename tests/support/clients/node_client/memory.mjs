// The main job: what was said is learnt, found, recalled and answered from. And files, streams, evidence.

import assert from 'node:assert/strict'
import { connect, contents, every, ids, raises, scenario, sdk, settled, statements, until, z } from './harness.mjs'

const TORTOISE = 'I adopted a tortoise named Balthazar last spring.'
const WORK = 'I work as a nurse at the hospital in Bergen.'
const SISTER = 'My sister Clara teaches physics in Lyon.'
const { HonchoError, NotFoundError, UnprocessableEntityError } = sdk

async function told() {
  const honcho = connect()
  const [alice, bob] = [await honcho.peer('alice'), await honcho.peer('bob')]
  const session = await honcho.session('talk', { peers: [alice, bob] })
  const stored = await session.addMessages([alice.message(`Hi there! ${TORTOISE}`), bob.message(SISTER), alice.message(`Thanks. ${WORK}`)])
  return { honcho, alice, bob, session, stored }
}

scenario('a_conversation_is_remembered_within_two_seconds', async () => {
  const { honcho, alice, bob, session, stored } = await told()
  const began = Date.now()
  await until(async () => (await honcho.conclusions.list()).total === 3, 'the deriving')
  assert.ok(Date.now() - began < 2000, `derived after ${Date.now() - began} ms`)
  const mine = await every(await alice.conclusions.list({ reverse: true, size: 1 }))
  assert.deepEqual(contents(mine), [TORTOISE, WORK])
  for (const x of mine) {
    assert.deepEqual([x.observerId, x.observedId, x.sessionId, x.level, x.sourceIds, x.timesDerived], ['alice', 'alice', 'talk', 'explicit', null, 1])
  }
  const status = await settled(honcho)
  assert.deepEqual([status.totalWorkUnits, status.completedWorkUnits], [3, 3])
  assert.equal((await session.queueStatus({ sender: bob })).totalWorkUnits, 1)

  assert.deepEqual(ids(await honcho.search('Balthazar tortoise', { limit: 1 })), [stored[0].id])
  assert.deepEqual(ids(await session.search('who teaches physics', { limit: 1 })), [stored[1].id])
  assert.deepEqual(new Set((await alice.search('physics tortoise nurse')).map((m) => m.peerId)), new Set(['alice']))
  assert.deepEqual(await honcho.search('tortoise', { filters: { peer_id: 'bob', session_id: 'other' } }), [])

  const representation = await alice.representation()
  assert.deepEqual(statements(representation), [TORTOISE, WORK])
  assert.equal(await session.representation('alice'), representation)
  assert.equal(await alice.conclusions.representation(), representation)
  assert.deepEqual(statements(await alice.representation({ maxConclusions: 1, searchQuery: 'nurse hospital', searchTopK: 1 })), [WORK])
  const ofPeer = await alice.context()
  assert.deepEqual([ofPeer.peerId, ofPeer.targetId, ofPeer.representation, ofPeer.peerCard], ['alice', 'alice', representation, null])
  await alice.setCard(['Name: Alice'])
  const context = await session.context({ peerTarget: 'alice', representationOptions: { searchQuery: 'tortoise' } })
  assert.deepEqual(ids(context.messages), ids(stored))
  assert.ok(context.peerRepresentation.includes(TORTOISE))
  assert.deepEqual([context.peerCard, context.summary], [['Name: Alice'], null])
  assert.deepEqual(context.toOpenAI('bob').map((part) => part.role).slice(-3), ['user', 'assistant', 'user'])
  assert.deepEqual(ids((await session.context({ tokens: stored[2].tokenCount, summary: false })).messages), [stored[2].id])
  const none = await session.summaries()
  assert.deepEqual([none.id, none.shortSummary, none.longSummary], ['talk', null, null])
})

scenario('summaries_are_written_as_the_session_grows', async () => {
  const honcho = connect()
  const alice = await honcho.peer('alice')
  const session = await honcho.session('talk', { configuration: { summary: { messagesPerShortSummary: 10, messagesPerLongSummary: 20 } } })
  const stored = await session.addMessages(Array.from({ length: 11 }, (_, day) => alice.message(`On day ${day} I counted ${day * 7} birds at the harbour.`)))
  await settled(honcho)
  const { shortSummary, longSummary } = await session.summaries()
  assert.deepEqual([shortSummary.messageId, longSummary], [stored[9].id, null])
  assert.ok(shortSummary.content.includes('harbour'))
  const [whole, without] = [await session.context(), await session.context({ summary: false })]
  assert.deepEqual([whole.summary.content, ids(whole.messages)], [shortSummary.content, ids(stored.slice(9))])
  assert.deepEqual([without.summary, ids(without.messages)], [null, ids(stored)])
})

scenario('conclusions_are_made_found_and_deleted', async () => {
  const honcho = connect()
  const [alice, bob] = [await honcho.peer('alice'), await honcho.peer('bob')]
  await honcho.session('talk')
  const view = alice.conclusionsOf(bob)
  const texts = ['Bob plays the cello.', 'Bob is allergic to peanuts.', 'Bob lives near the harbour.']
  const made = await view.create([{ content: texts[0], sessionId: 'talk' }, { content: texts[1] }, { content: texts[2] }])
  assert.deepEqual(made.map((x) => [x.content, x.sessionId]), [[texts[0], 'talk'], [texts[1], null], [texts[2], null]])
  assert.deepEqual(contents(await every(await view.list({ size: 2 }))), texts.toReversed())
  assert.deepEqual(contents(await every(await view.list({ size: 2, reverse: true }))), texts)
  assert.deepEqual(contents(await every(await view.list({ session: 'talk' }))), [texts[0]])
  assert.equal((await view.list({ filters: { level: 'deductive' } })).total, 0)
  assert.deepEqual(contents(await view.query('allergic to peanuts', 1)), [texts[1]])
  assert.deepEqual(await view.query('peanuts', 5, undefined, { level: 'inductive' }), [])
  assert.equal((await view.get(made[1].id)).content, texts[1])
  await raises(NotFoundError, alice.conclusions.get(made[1].id))
  assert.equal((await honcho.conclusions.get(made[2].id)).observedId, 'bob')
  assert.deepEqual(new Set(ids(await honcho.conclusions.getMany([made[0].id, made[2].id, 'x'.repeat(21)]))), new Set([made[0].id, made[2].id]))
  assert.deepEqual(ids(await view.getMany([made[1].id])), [made[1].id])
  assert.deepEqual(contents(await every(await honcho.conclusions.list({ reverse: true, size: 2 }))), texts)
  assert.deepEqual(await every(await view.derived(made[0].id, { size: 1, reverse: true })), [])
  await view.delete(made[1].id)
  await raises(NotFoundError, view.delete(made[1].id))
  assert.deepEqual(contents(await every(await view.list({ reverse: true }))), [texts[0], texts[2]])
  await raises(NotFoundError, alice.conclusionsOf('nobody').create({ content: 'x' }))
})

scenario('a_dream_replaces_what_is_outdated', async () => {
  const honcho = connect()
  const alice = await honcho.peer('alice')
  for (const content of ['I live in Rome.', 'My favourite colour is blue.', 'I moved to Berlin.']) await alice.conclusions.create({ content })
  await honcho.scheduleDream({ observer: alice })
  await settled(honcho)
  assert.deepEqual(contents(await every(await alice.conclusions.list({ reverse: true }))), ['My favourite colour is blue.', 'I moved to Berlin.'])
})

scenario('questions_are_answered', async () => {
  const { honcho, alice, bob, session } = await told()
  await settled(honcho)
  const question = 'What is the name of the tortoise?'
  const whole = await alice.chat(question)
  assert.match(whole, /Balthazar/)
  assert.match(await bob.chat('Who teaches physics in Lyon?', { session, reasoningLevel: 'high' }), /Clara/)
  assert.match(await honcho.chat('Who teaches physics in Lyon?'), /Clara/)
  assert.doesNotMatch((await alice.chat('Which colour has the helicopter of the president?')) ?? '', /Balthazar|Bergen/)
  const scope = await honcho.scope('empty')
  assert.doesNotMatch((await alice.chat(question, { scope: [scope] })) ?? '', /Balthazar/)

  const read = await alice.chat(question, { includeEvidence: true })
  assert.ok(contents(read.evidence.conclusions).includes(TORTOISE))
  assert.ok(read.evidence.conclusions.every((x) => x.level === 'explicit' && x.session_id === 'talk' && Array.isArray(x.source_ids)))
  const everywhere = await honcho.chat('Who teaches physics in Lyon?', { includeEvidence: true })
  assert.ok(contents(everywhere.evidence.conclusions).includes(SISTER))

  const Finding = z.object({ answer: z.string(), certain: z.boolean(), kind: z.enum(['animal', 'person']) })
  const finding = await alice.chat(question, { responseFormat: Finding })
  assert.match(Finding.parse(finding).answer, /Balthazar/)
  const form = { type: 'object', properties: { answer: { type: 'string' } }, required: ['answer'] }
  assert.match(JSON.parse(await honcho.chat('Who teaches physics in Lyon?', { responseFormat: form })).answer, /Clara/)
  await raises(UnprocessableEntityError, honcho.chat('Who?', { responseFormat: { type: 'object', not: {} } }))
  await raises(NotFoundError, alice.chat(question, { target: 'nobody' }))
  const missing = await raises(NotFoundError, honcho.chat('Who?', { scope: 'typo' }))
  assert.ok(missing.message.includes('typo'), missing.message)

  const stream = await alice.chatStream(question)
  const pieces = []
  for await (const piece of stream) pieces.push(piece)
  assert.equal(pieces.join('').trim(), whole)
  assert.equal(stream.evidence, null)
  const all = await honcho.chatStream('Who teaches physics in Lyon?', { includeEvidence: true })
  assert.match(await all.getFinalResponse(), /Clara/)
  assert.ok(contents(all.evidence.conclusions).includes(SISTER))
})

scenario('files_become_messages', async () => {
  const honcho = connect()
  const session = await honcho.session('talk')
  const note = { filename: 'note.txt', content: Buffer.from(`${TORTOISE} – Ægir\n`), content_type: 'text/plain' }
  const when = new Date(Date.UTC(2023, 6, 4, 12))
  const [first] = await session.uploadFile(note, 'alice', { metadata: { from: 'phone' }, createdAt: when })
  assert.deepEqual([first.content.trim(), first.peerId, first.metadata], [`${TORTOISE} – Ægir`, 'alice', { from: 'phone' }])
  assert.equal(Date.parse(first.createdAt), when.getTime())
  const [second] = await session.uploadFile(new File(['{"city": "Tromsø"}'], 'data.json', { type: 'application/json' }), 'alice', {
    configuration: { reasoning: { enabled: false } },
  })
  assert.deepEqual(JSON.parse(second.content), { city: 'Tromsø' })
  assert.deepEqual(ids(await every(await session.messages())), ids([first, second]))
  const photo = { filename: 'photo.png', content: Buffer.from([1, 2, 3]), content_type: 'image/png' }
  assert.equal((await raises(HonchoError, session.uploadFile(photo, 'alice'))).status, 415)
})
