// What each method of the published client for Node may be given, read from the declarations that come with it.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const FILES = {
  Honcho: 'client',
  Peer: 'peer',
  Session: 'session',
  Scope: 'scope',
  ConclusionsView: 'conclusions',
  WorkspaceConclusions: 'conclusions',
}
const NESTED = 'representationOptions'

// The pieces of a text between separators that are in no bracket.
function pieces(text, separator) {
  const found = ['']
  let depth = 0
  for (const letter of text) {
    if ('({[<'.includes(letter)) depth += 1
    if (')}]>'.includes(letter)) depth -= 1
    if (letter === separator && depth === 0) found.push('')
    else found[found.length - 1] += letter
  }
  return found.map((piece) => piece.trim()).filter(Boolean)
}

const keys = (body) => pieces(body, ';').map((property) => property.match(/^\w+/)[0])

// What stands in the first braces of a text.
function inBraces(text) {
  const start = text.indexOf('{')
  let depth = 0
  for (let end = start; end >= 0 && end < text.length; end += 1) {
    if (text[end] === '{') depth += 1
    if (text[end] === '}') depth -= 1
    if (depth === 0) return text.slice(start + 1, end)
  }
  return ''
}

// By method, as `Session.search`: the names of what it takes in turn, and of every option.
export function parameters(folder) {
  const read = (name) => readFileSync(join(folder, 'node_modules/@honcho-ai/sdk/dist', `${name}.d.ts`), 'utf8').replace(/\/\*[\s\S]*?\*\/|=>/g, '')
  const ofRepresentation = keys(inBraces(read('types/api').split('interface RepresentationOptions')[1]))
  const found = new Map()
  for (const [kind, file] of Object.entries(FILES)) {
    for (const member of pieces(inBraces(read(file).split(`declare class ${kind} `)[1]), ';')) {
      const declared = member.match(/^(\w+)(?:<\w+>)?\(([\s\S]*)\): [\s\S]*$/)
      if (!declared || declared[1] === 'constructor') continue
      const taken = pieces(declared[2], ',')
      const options = taken.filter((each) => each.startsWith('options')).flatMap((each) => {
        const named = each.includes('{') ? keys(inBraces(each)) : ofRepresentation
        return named.flatMap((name) => (name === NESTED ? ofRepresentation.map((inner) => `${name}.${inner}`) : [name]))
      })
      const full = `${kind}.${declared[1]}`
      found.set(full, { inTurn: taken.map((each) => each.match(/^\w+/)[0]), options: new Set([...(found.get(full)?.options ?? []), ...options]) })
    }
  }
  return found
}

// The names of what a call gives, of those that the method takes.
export function given({ inTurn, options }, args) {
  return args.flatMap((value, place) => {
    if (value === undefined) return []
    if (inTurn[place] !== 'options') return [inTurn[place]]
    const named = Object.entries(value).flatMap(([name, inner]) => (name === NESTED ? Object.keys(inner).map((key) => `${name}.${key}`) : [name]))
    return named.filter((name) => options.has(name))
  })
}

// All that a method may be given.
export const every = ({ inTurn, options }) => [...inTurn.filter((name) => name !== 'options'), ...options]
