// What the client raises with several keys: `node keyed.mjs URL FOLDER WORKSPACE OTHER-WORKSPACE`. Reads a JSON object of keys by name.
// Prints one of what each may: by name, the class of what was raised per call, null for nothing.

import { readFileSync } from 'node:fs'
import { connect } from './harness.mjs'

const [own, other] = process.argv.slice(4)

async function attempt(call) {
  try {
    await call()
    return null
  } catch (error) {
    return error.constructor.name
  }
}

const outcomes = {}
for (const [name, apiKey] of Object.entries(JSON.parse(readFileSync(0, 'utf8')))) {
  const [mine, theirs] = [own, other].map((workspace) => connect(workspace, { apiKey }))
  outcomes[name] = {
    own: await attempt(() => mine.peers()),
    chat: await attempt(() => mine.chat('Who?')),
    scopes: await attempt(() => mine.scopes()),
    other: await attempt(() => theirs.peers()),
    every: await attempt(() => mine.workspaces()),
  }
}
console.log(JSON.stringify(outcomes))
