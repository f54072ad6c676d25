// Scenarios of the published client for Node, run against a server: each gets a client of a workspace of its own.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import * as declared from './parameters.mjs'

export const [URL, FOLDER] = process.argv.slice(2)
const load = createRequire(join(FOLDER, 'package.json'))
export const sdk = load('@honcho-ai/sdk')
export const { z } = load('zod')
const PATIENCE = 20_000 // milliseconds after which something that has to happen is said not to happen

export const scenarios = new Map()
export const called = new Set()

// Every public method of the client that talks to a server, wrapped so that calls are noticed.
const LOCAL = new Set(['Peer.message', 'Peer.conclusionsOf'])
export const methods = new Set()
const parameters = declared.parameters(FOLDER)
const given = new Set()
for (const kind of ['Honcho', 'Peer', 'Session', 'Scope', 'ConclusionsView', 'WorkspaceConclusions']) {
  const prototype = sdk[kind].prototype
  for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
    if (typeof value !== 'function' || name.startsWith('_') || ['constructor', 'toString'].includes(name)) continue
    const full = `${kind}.${name}`
    if (LOCAL.has(full)) continue
    methods.add(full)
    prototype[name] = function (...args) {
      called.add(full)
      for (const name of declared.given(parameters.get(full), args)) given.add(`${full}(${name})`)
      return value.apply(this, args)
    }
  }
}

// Every parameter and option that no scenario gives, as `Session.search(limit)`.
export const ungiven = () =>
  [...methods].flatMap((full) => declared.every(parameters.get(full)).map((name) => `${full}(${name})`)).filter((name) => !given.has(name))

export function scenario(name, run) {
  assert.ok(!scenarios.has(name), name)
  scenarios.set(name, run)
}

export const unique = (prefix) => `${prefix}-${randomUUID().slice(0, 12)}`

// A client that retries nothing: a server error must show.
export function connect(workspaceId = unique('w'), further = {}) {
  return new sdk.Honcho({ baseURL: URL, workspaceId, maxRetries: 0, timeout: 30_000, ...further })
}

export const ids = (items) => [...items].map((item) => item.id)
export const contents = (items) => [...items].map((item) => item.content)

// All items, from this page on to the last.
export async function every(page) {
  const found = []
  for await (const item of page) found.push(item)
  return found
}

// The second page of two, in both directions, of a list that has these items.
export async function secondPages(list, expected, what, name = (item) => item.id) {
  assert.ok(expected.length >= 3, what)
  for (const [order, options] of [[expected, {}], [expected, { reverse: false }], [expected.toReversed(), { reverse: true }]]) {
    const page = await list({ page: 2, size: 2, ...options })
    assert.deepEqual([page.total, page.page, page.size, page.pages], [expected.length, 2, 2, Math.ceil(expected.length / 2)], what)
    assert.deepEqual(page.items.map(name), order.slice(2, 4), `${what}, ${JSON.stringify(options)}`)
  }
}

// The statements of a representation, without their times.
export const statements = (text) =>
  text
    .split('\n')
    .filter((line) => line.startsWith('['))
    .map((line) => line.slice(line.indexOf('] ') + 2))

export async function until(look, what = 'it') {
  const deadline = Date.now() + PATIENCE
  for (;;) {
    const found = await look()
    if (found) return found
    assert.ok(Date.now() < deadline, `${what} did not happen`)
    await new Promise((resolve) => setTimeout(resolve, 30))
  }
}

// Until no work is left in the workspace; the status.
export const settled = (honcho) =>
  until(async () => {
    const status = await honcho.queueStatus()
    return status.pendingWorkUnits + status.inProgressWorkUnits === 0 && status
  }, 'the end of the work')

// The error that the call raises, which must be of this very class.
export async function raises(kind, call) {
  let answer
  try {
    answer = await call
  } catch (error) {
    assert.equal(error.constructor.name, kind.name, `${error.constructor.name} instead of ${kind.name}: ${error.message}`)
    return error
  }
  assert.fail(`${kind.name} was not raised, the answer was ${JSON.stringify(answer)}`)
}
