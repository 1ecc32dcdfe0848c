/**
 * Reads what each test proves, from the comments directly above it:
 *
 *     // proves: Email > to | subject; Errors > no_content
 *     // answers: POST /email/send: no_content, missing_from_email; keyed: unauthorized
 *     // operations: GET /activity
 *     // at limit: Limits > Subject length
 *     // past limit: Limits > Subject length
 *     t.test('...', ...)
 *
 * Places are named by `read-contract.ts`, or by `OWN_RULES` and `LIMITS`; several of one section are separated by ` | `. Operations are
 * written without `/api/v1`; answers may name a class of operations instead (`CLASSES` in `contract.test.ts`). A long line goes on with its
 * keyword repeated. Called by `contract.test.ts`, which checks the names. Pure.
 */
import ts from 'typescript'

/** `at` and `past` name a limit that the test keeps to, or exceeds. */
export type ClaimKind = 'place' | 'answer' | 'operation' | 'at' | 'past'

export interface Claim {
  readonly kind: ClaimKind
  /** A place, an operation, or `OPERATION: code`. */
  readonly name: string
  /** E.g. `test/msa/schedule.test.ts:41`. */
  readonly where: string
}

export interface FileClaims {
  readonly claims: readonly Claim[]
  /** Comments that cannot be read, or that stand above no test, each with its file and line. */
  readonly faults: readonly string[]
}

interface Keyword {
  readonly kinds: readonly ClaimKind[]
  /** @returns nothing if the text cannot be read */
  readonly names: (text: string) => string[]
}

const KEYWORDS: ReadonlyMap<string, Keyword> = new Map<string, Keyword>([
  ['proves', { kinds: ['place'], names: placesIn }],
  ['answers', { kinds: ['answer'], names: answersIn }],
  ['operations', { kinds: ['operation'], names: text => text.split('; ') }],
  ['at limit', { kinds: ['at'], names: placesIn }],
  ['past limit', { kinds: ['past'], names: placesIn }],
  ['at and past limit', { kinds: ['at', 'past'], names: placesIn }],
])

const COMMENT = /^\s*\/\/ ([a-z]+(?: [a-z]+)*): (.*)$/

/** A comment whose keyword is misspelt still names a place or an operation. */
const LOOKS_LIKE_CLAIM = / > |^[A-Z]+ \//

/** @param file path of the test file, for messages */
export function readClaims(file: string, text: string): FileClaims {
  const claims: Claim[] = []
  const faults: string[] = []
  const lines = text.split('\n')
  const aboveTests = text.search(/^\s*\/\/ [a-z ]+: /m) < 0 ? new Set<number>() : linesAboveTests(lines, text)
  for (const [at, line] of lines.entries()) {
    const [, keyword = '', rest = ''] = COMMENT.exec(line) ?? []
    const known = KEYWORDS.get(keyword)
    const where = `${file}:${at + 1}`
    if (!known) {
      if (aboveTests.has(at) && LOOKS_LIKE_CLAIM.test(rest))
        faults.push(`${where}: unknown keyword "${keyword}"`)
      continue
    }
    const names = known.names(rest)
    if (!aboveTests.has(at)) faults.push(`${where}: not directly above a test`)
    else if (names.length === 0) faults.push(`${where}: "${rest}" cannot be read`)
    else claims.push(...known.kinds.flatMap(kind => names.map(name => ({ kind, name, where }))))
  }
  return { claims, faults }
}

/** `Email > to | subject; Errors > no_content` */
function placesIn(text: string): string[] {
  const groups = text.split('; ').map(group => /^(.+?) > (.+)$/.exec(group))
  if (groups.includes(null)) return []
  return groups.flatMap(group => (group?.[2] ?? '').split(' | ').map(name => `${group?.[1] ?? ''} > ${name}`))
}

/** `POST /email/send: no_content, missing_from_email; keyed: unauthorized` */
function answersIn(text: string): string[] {
  const groups = text.split('; ').map(group => /^(.+): ([a-z_]+(?:, [a-z_]+)*)$/.exec(group))
  if (groups.includes(null)) return []
  return groups.flatMap(group => (group?.[2] ?? '').split(', ').map(code => `${group?.[1] ?? ''}: ${code}`))
}

/** Indexes of the `//` lines that stand directly above a `t.test(...)`. */
function linesAboveTests(lines: readonly string[], text: string): Set<number> {
  const source = ts.createSourceFile('a.test.ts', text, ts.ScriptTarget.ES2022)
  const above = new Set<number>()
  const visit = (node: ts.Node): void => {
    if (ts.isExpressionStatement(node) && isTest(node.expression, source)) {
      let line = source.getLineAndCharacterOfPosition(node.getStart(source)).line - 1
      for (; lines[line]?.trim().startsWith('//'); line -= 1) above.add(line)
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return above
}

function isTest(expression: ts.Expression, source: ts.SourceFile): boolean {
  const inner =
    ts.isAwaitExpression(expression) || ts.isVoidExpression(expression) ? expression.expression : expression
  return ts.isCallExpression(inner) && inner.expression.getText(source) === 't.test'
}
