/**
 * Reads which tests there are: the titles in the files below `test/`, and whether a file's tests speak to the running appliance.
 *
 * Called by `contract.test.ts`. Uses the TypeScript parser, so that neither a comment nor a string counts as a test.
 */
import { existsSync, readFileSync } from 'node:fs'
import ts from 'typescript'

export interface TestFile {
  /** Of `t.test`, as written; a template keeps its `${...}`. */
  readonly titles: ReadonlySet<string>
  /** It opens the whole server, here or in a process. */
  readonly runsAppliance: boolean
}

/** What opens the whole server with its HTTP listener. */
const OPENERS = /\b(openTestAppliance|openServer|initialise)\(/

/** @param file below `test/`, without `.test.ts` @returns undefined where there is none */
export function readTestFile(file: string): TestFile | undefined {
  const path = `test/${file}.test.ts`
  if (!existsSync(path)) return undefined
  const text = readFileSync(path, 'utf8')
  const titles = new Set<string>()
  const visit = (node: ts.Node): void => {
    const title = titleOf(node)
    if (title !== undefined) titles.add(title)
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile(path, text, ts.ScriptTarget.ES2022, true))
  return { titles, runsAppliance: OPENERS.test(text) }
}

/** `t.test(title, ...)`; a store's test on each database speaks no HTTP and shows no rule. */
function titleOf(node: ts.Node): string | undefined {
  if (!ts.isCallExpression(node) || node.expression.getText() !== 't.test') return undefined
  const [title] = node.arguments
  if (!title) return undefined
  if (ts.isStringLiteralLike(title)) return title.text
  return ts.isTemplateExpression(title) ? title.getText().slice(1, -1) : undefined
}
