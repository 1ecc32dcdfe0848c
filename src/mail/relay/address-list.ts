/**
 * Parses address fields: From, To, Cc, Reply-To and others.
 *
 * Accepts obsolete syntax: routes, comments, empty list elements. Addresses are returned as written; `readAddress` validates them. Never
 * throws: an unreadable list has a `fault`, a phrase that completes "the field ...". Linear.
 * Standards: RFC 5322 §3.4 (address-list), §4.4 (obsolete addressing), RFC 6854 (groups in From), RFC 2047 §5.
 */
import { decodeWords } from '../mime/encoded-word.js'

export interface ListedMailbox {
  /** Display name, decoded; a comment if there is no other. */
  readonly name?: string
  /** Without angle brackets, route, comments and white space. */
  readonly address: string
}

/** `Friends: ann@example.com, bob@example.net;`. */
export interface ListedGroup {
  readonly group: string
  readonly members: readonly ListedMailbox[]
}

export interface AddressList {
  readonly elements: readonly (ListedMailbox | ListedGroup)[]
  readonly fault?: string
}

/** Characters without syntactic meaning. */
const PLAIN_RUN = /[^\s"()<>[\]:;,]+/y
const WHITE_RUN = /\s+/y

interface MailboxState {
  /** Words of a display name or bare address, unquoted. */
  words: string
  /** The same with quotes, for an address. */
  written: string
  comment: string
  angle?: string
  /** An `@` outside quotes and brackets. */
  hasBareAt: boolean
}

class SyntaxFault extends Error {}

/** @param text unfolded and decoded, encoded-words still in place */
export function readAddressList(text: string): AddressList {
  const elements: (ListedMailbox | ListedGroup)[] = []
  try {
    readElements(text, elements)
    return { elements }
  } catch (thrown) {
    if (!(thrown instanceof SyntaxFault)) throw thrown
    return { elements, fault: thrown.message }
  }
}

/** Including members of groups. */
export function mailboxesOf({ elements }: AddressList): ListedMailbox[] {
  return elements.flatMap(element => ('group' in element ? element.members : [element]))
}

function readElements(text: string, elements: (ListedMailbox | ListedGroup)[]): void {
  let members: ListedMailbox[] | undefined
  let pieces = newMailbox()
  const endMailbox = (): void => {
    const mailbox = toMailbox(pieces)
    if (mailbox) (members ?? elements).push(mailbox)
    pieces = newMailbox()
  }
  let at = 0
  while (at < text.length) {
    const character = text[at]
    if (character === ',') {
      endMailbox()
      at++
    } else if (character === ':') {
      if (members) throw new SyntaxFault('has nested groups')
      members = []
      elements.push({ group: decodeWords(pieces.words.trim()), members })
      pieces = newMailbox()
      at++
    } else if (character === ';') {
      endMailbox()
      members = undefined
      at++
    } else {
      at = readPiece(text, at, pieces)
    }
  }
  endMailbox()
}

function newMailbox(): MailboxState {
  return { words: '', written: '', comment: '', hasBareAt: false }
}

function readPiece(text: string, at: number, pieces: MailboxState): number {
  switch (text[at]) {
    case '"': {
      const end = quotedEnd(text, at)
      if (pieces.angle !== undefined) throw new SyntaxFault('has text after an address')
      pieces.words += text.slice(at + 1, end - 1).replace(/\\(.)/gs, '$1')
      pieces.written += text.slice(at, end)
      return end
    }
    case '(': {
      const end = commentEnd(text, at)
      pieces.comment ||= text.slice(at + 1, end - 1)
      return end
    }
    case '<': {
      if (pieces.angle !== undefined) throw new SyntaxFault('has two addresses without a comma between them')
      const end = angleEnd(text, at)
      pieces.angle = withoutRoute(text.slice(at + 1, end - 1))
      return end
    }
    case '[': {
      const end = text.indexOf(']', at) + 1
      if (end === 0) throw new SyntaxFault('has an unclosed bracket')
      return addWord(pieces, text.slice(at, end), end)
    }
    case ')':
    case '>':
    case ']':
      throw new SyntaxFault('has an unmatched closing bracket')
    default: {
      const white = runAt(WHITE_RUN, text, at)
      if (white !== '') {
        pieces.words += ' '
        pieces.written += ' '
        return at + white.length
      }
      const run = runAt(PLAIN_RUN, text, at)
      if (run.includes('@')) pieces.hasBareAt = true
      return addWord(pieces, run, at + run.length)
    }
  }
}

function addWord(pieces: MailboxState, word: string, end: number): number {
  if (pieces.angle !== undefined) throw new SyntaxFault('has text after an address')
  pieces.words += word
  pieces.written += word
  return end
}

function runAt(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at
  return pattern.exec(text)?.[0] ?? ''
}

function quotedEnd(text: string, at: number): number {
  for (let end = at + 1; end < text.length; end++) {
    if (text[end] === '\\') end++
    else if (text[end] === '"') return end + 1
  }
  throw new SyntaxFault('has an unclosed quote')
}

function commentEnd(text: string, at: number): number {
  let depth = 0
  for (let end = at; end < text.length; end++) {
    if (text[end] === '\\') end++
    else if (text[end] === '(') depth++
    else if (text[end] === ')' && --depth === 0) return end + 1
  }
  throw new SyntaxFault('has an unclosed comment')
}

function angleEnd(text: string, at: number): number {
  for (let end = at + 1; end < text.length; end++) {
    if (text[end] === '"') end = quotedEnd(text, end) - 1
    else if (text[end] === '>') return end + 1
    else if (text[end] === '<') break
  }
  throw new SyntaxFault('has an unclosed angle bracket')
}

/** `@relay.example,@other.example:ann@example.com` (RFC 5322 §4.4) means the address after the colon. */
function withoutRoute(angle: string): string {
  const spec = angle.trim()
  const colon = spec.startsWith('@') ? spec.indexOf(':') : -1
  return spec.slice(colon + 1).trim()
}

function toMailbox({ words, written, comment, angle, hasBareAt }: MailboxState): ListedMailbox | undefined {
  if (angle !== undefined) {
    const name = decodeWords(words.trim()) || decodeWords(comment.trim())
    // A name that is an address is ambiguous, unless it is the same address: many programs do that.
    if (hasBareAt && words.trim().toLowerCase() !== angle.toLowerCase())
      throw new SyntaxFault('has a display name that is a different address')
    return name === '' ? { address: angle } : { name, address: angle }
  }
  // RFC 5322 §4.4 allows white space around `.` and `@`.
  const address = written.trim().replace(/ ?([@.]) ?/g, '$1')
  if (address === '') return undefined
  const name = decodeWords(comment.trim())
  return name === '' ? { address } : { name, address }
}
