/**
 * Reads what the tests there are say: the titles in the files below `test/`, what each of them asserts, and whether a file's
 * tests speak to the running appliance.
 *
 * Called by `contract.test.ts`. Uses the TypeScript parser, so that neither a comment nor a string counts as a test or as an
 * assertion. What a test asserts is the text of its assertions, and of what of the file these depend on: the variables and loops
 * that lead to them, the tables that those go over, and the file's own functions that assert for it. What a test only sends
 * is none of it.
 */
import { existsSync, readFileSync } from 'node:fs'
import ts from 'typescript'

export interface TestFile {
  /** What each test asserts, folded, by title as written; a template keeps its `${...}`. */
  readonly tests: ReadonlyMap<string, string>
  /** It opens the whole server, here or in a process. */
  readonly runsAppliance: boolean
}

/** What opens the whole server with its HTTP listener. */
const OPENERS = /\b(openTestAppliance|openCampaigns|openServer|initialise)\(/

/** Of `t`; the others open, close and arrange. */
const ASSERTIONS = new Set([
  'equal',
  'not',
  'same',
  'notSame',
  'match',
  'notMatch',
  'has',
  'hasProps',
  'ok',
  'notOk',
  'type',
  'throws',
  'doesNotThrow',
  'rejects',
  'resolves',
  'resolveMatch',
  'fail',
])

/** @param file below `test/`, without `.test.ts` @returns undefined where there is none */
export function readTestFile(file: string): TestFile | undefined {
  const path = `test/${file}.test.ts`
  if (!existsSync(path)) return undefined
  const text = readFileSync(path, 'utf8')
  return { tests: readTests(text), runsAppliance: OPENERS.test(text) }
}

/** @param text of a test file @returns what each of its tests asserts, folded, by title */
export function readTests(text: string): Map<string, string> {
  const source = ts.createSourceFile('a.test.ts', text, ts.ScriptTarget.ES2022, true)
  const file = declarationsOf(source.statements)
  const tests = new Map<string, string>()
  const visit = (node: ts.Node): void => {
    const test = testOf(node)
    if (test) tests.set(test.title, assertedBy(node, test.body, file))
    ts.forEachChild(node, visit)
  }
  visit(source)
  return tests
}

/** `t.test(title, ...)`; a store's test on each database speaks no HTTP and shows no rule. */
function testOf(node: ts.Node): { title: string; body: ts.Node } | undefined {
  if (!ts.isCallExpression(node) || node.expression.getText() !== 't.test') return undefined
  const [title] = node.arguments
  const body = node.arguments.at(-1)
  if (!title || !body) return undefined
  if (ts.isStringLiteralLike(title)) return { title: title.text, body }
  return ts.isTemplateExpression(title) ? { title: title.getText().slice(1, -1), body } : undefined
}

/** What stands behind a name, by name. */
type Declarations = ReadonlyMap<string, readonly ts.Node[]>

/** The names that a file declares at its top. */
function declarationsOf(statements: Iterable<ts.Statement>): Declarations {
  const found = new Map<string, ts.Node[]>()
  for (const statement of statements) {
    if (ts.isFunctionDeclaration(statement) && statement.name) found.set(statement.name.text, [statement])
    if (ts.isVariableStatement(statement))
      for (const one of statement.declarationList.declarations) declare(found, one.name, one)
  }
  return found
}

/**
 * Names within a test, with what their values come from: initialisers, what a loop goes over (one around the test as well),
 * what a callback is given.
 */
function localsOf(test: ts.Node, body: ts.Node): Declarations {
  const found = new Map<string, ts.Node[]>()
  for (let around = test.parent; !ts.isSourceFile(around); around = around.parent)
    if (ts.isForOfStatement(around) && ts.isVariableDeclarationList(around.initializer))
      for (const { name } of around.initializer.declarations) declare(found, name, around.expression)
  const visit = (node: ts.Node): void => {
    if (ts.isVariableDeclaration(node)) {
      const loop = node.parent.parent
      const from = ts.isForOfStatement(loop) ? loop.expression : node.initializer
      if (from) declare(found, node.name, from)
    }
    if (ts.isFunctionDeclaration(node) && node.name) declare(found, node.name, node)
    if (ts.isParameter(node) && ts.isCallExpression(node.parent.parent))
      declare(found, node.name, node.parent.parent.expression)
    ts.forEachChild(node, visit)
  }
  visit(body)
  return found
}

function declare(found: Map<string, ts.Node[]>, name: ts.BindingName, from: ts.Node): void {
  for (const text of namesIn(name)) found.set(text, [...(found.get(text) ?? []), from])
}

function namesIn(name: ts.BindingName): string[] {
  if (ts.isIdentifier(name)) return [name.text]
  return name.elements.flatMap(one => (ts.isBindingElement(one) ? namesIn(one.name) : []))
}

function assertedBy(test: ts.Node, body: ts.Node, file: Declarations): string {
  const locals = localsOf(test, body)
  const asserting = new Set([...file].filter(([, nodes]) => nodes.some(holdsAssertion)).map(([name]) => name))
  const texts = new Set<string>()
  const seen = new Set<string>()
  /** Tables and the file's functions stand with their text; other values only lead on to them. */
  const follow = (node: ts.Node): void => {
    for (const name of identifiersIn(node)) {
      if (seen.has(name)) continue
      seen.add(name)
      for (const from of locals.get(name) ?? []) {
        if (isTable(from)) texts.add(from.getText())
        follow(from)
      }
      for (const from of file.get(name) ?? []) {
        texts.add(ts.isFunctionLike(valueOf(from)) ? assertionsIn(from, asserting) : from.getText())
        follow(from)
      }
    }
  }
  for (const assertion of findAssertions(body, asserting)) {
    texts.add(assertion.getText())
    follow(assertion)
  }
  return fold([...texts].join('\n'))
}

/** Whether it is written out: a list or an object, or the entries of one. */
function isTable(node: ts.Node): boolean {
  if (ts.isAsExpression(node) || ts.isSatisfiesExpression(node) || ts.isParenthesizedExpression(node))
    return isTable(node.expression)
  if (ts.isCallExpression(node) && node.expression.getText() === 'Object.entries')
    return node.arguments.every(isTable)
  return ts.isArrayLiteralExpression(node) || ts.isObjectLiteralExpression(node)
}

/** However it is broken into lines. */
export function fold(text: string): string {
  return text.replace(/\s+/g, '').replace(/,(?=[)\]}])/g, '')
}

function valueOf(node: ts.Node): ts.Node {
  return ts.isVariableDeclaration(node) && node.initializer ? node.initializer : node
}

function assertionsIn(node: ts.Node, asserting: ReadonlySet<string>): string {
  return findAssertions(node, asserting)
    .map(one => one.getText())
    .join('\n')
}

function holdsAssertion(node: ts.Node): boolean {
  return ts.isFunctionLike(valueOf(node)) && findAssertions(node, new Set()).length > 0
}

/** @param asserting functions of the file that assert */
function findAssertions(node: ts.Node, asserting: ReadonlySet<string>): ts.CallExpression[] {
  const found: ts.CallExpression[] = []
  const visit = (one: ts.Node): void => {
    if (ts.isCallExpression(one) && isAssertion(one, asserting)) found.push(one)
    else ts.forEachChild(one, visit)
  }
  visit(node)
  return found
}

function isAssertion({ expression }: ts.CallExpression, asserting: ReadonlySet<string>): boolean {
  if (ts.isIdentifier(expression)) return asserting.has(expression.text)
  return (
    ts.isPropertyAccessExpression(expression) &&
    expression.expression.getText() === 't' &&
    ASSERTIONS.has(expression.name.text)
  )
}

function identifiersIn(node: ts.Node): Set<string> {
  const names = new Set<string>()
  const visit = (one: ts.Node): void => {
    if (ts.isIdentifier(one)) names.add(one.text)
    ts.forEachChild(one, visit)
  }
  visit(node)
  return names
}
