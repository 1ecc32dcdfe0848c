/** The titles in a test file, for tables that name tests. */
import { existsSync, readFileSync } from 'node:fs'
import ts from 'typescript'

export interface TestFile {
  readonly titles: ReadonlySet<string>
  /** It opens the whole server, in this process or another. */
  readonly runsAppliance: boolean
}

/** What opens the whole server with its HTTP listener. */
const OPENERS = /\b(openTestAppliance|openCampaigns|openFeeds|openServer|initialise)\(/

const testFiles = new Map<string, TestFile | undefined>()

/** @param file below `test/`, without `.test.ts` */
export function findTestFile(file: string): TestFile | undefined {
  if (!testFiles.has(file)) {
    const path = `test/${file}.test.ts`
    const text = existsSync(path) ? readFileSync(path, 'utf8') : undefined
    testFiles.set(
      file,
      text === undefined ? undefined : { titles: titlesIn(text), runsAppliance: OPENERS.test(text) },
    )
  }
  return testFiles.get(file)
}

/** Titles of `t.test(title, ...)`. Parsed, so that comments do not count; store tests (`storeTest`) speak no HTTP. */
function titlesIn(text: string): Set<string> {
  const source = ts.createSourceFile('a.test.ts', text, ts.ScriptTarget.ES2022)
  const titles = new Set<string>()
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && node.expression.getText(source) === 't.test') {
      const title = node.arguments[0]
      if (title && ts.isStringLiteralLike(title)) titles.add(title.text)
      if (title && ts.isTemplateExpression(title)) titles.add(title.getText(source).slice(1, -1))
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return titles
}
