/** The recipes of `docs/webhooks.md` as programs, each run by whatever runs its language. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { signatureFields } from '../../src/webhooks/delivery/attempt.js'

/** Ends with 0 where the signature is right and 1 where it is not: arguments are body, signature, secret and unix seconds. */
export interface Recipe {
  readonly language: string
  readonly file: string
  readonly program: (recipe: string) => string
  readonly command: readonly string[]
  readonly version: readonly string[]
}

export const RECIPES: readonly Recipe[] = [
  {
    language: 'sh',
    file: 'verify.sh',
    program: recipe =>
      `${recipe}\nfile=$(mktemp)\nprintf %s "$1" > "$file"\nis_from_postroad "$file" "$2" "$3" "$4"\nresult=$?\nrm "$file"\nexit $result\n`,
    command: ['sh'],
    version: ['openssl', 'version'],
  },
  {
    language: 'js',
    file: 'verify.mjs',
    program: recipe =>
      `${recipe}\nconst [body, signature, secret, now] = process.argv.slice(2)\n` +
      'process.exit(isFromPostroad(Buffer.from(body), signature, secret, Number(now)) ? 0 : 1)\n',
    command: [process.execPath],
    version: [process.execPath, '--version'],
  },
  {
    language: 'python',
    file: 'verify.py',
    program: recipe =>
      `${recipe}\nimport sys\nbody, signature, secret, now = sys.argv[1:]\n` +
      'sys.exit(0 if is_from_postroad(body.encode(), signature, secret, float(now)) else 1)\n',
    command: ['python3'],
    version: ['python3', '--version'],
  },
  {
    language: 'php',
    file: 'verify.php',
    program: recipe =>
      `<?php\n${recipe}\nexit(isFromPostroad($argv[1], $argv[2], $argv[3], (int) $argv[4]) ? 0 : 1);\n`,
    command: ['php'],
    version: ['php', '--version'],
  },
  {
    language: 'go',
    file: 'verify.go',
    program: recipe =>
      'package main\n\nimport (\n' +
      ['crypto/hmac', 'crypto/sha256', 'encoding/hex', 'os', 'strconv', 'strings', 'time']
        .map(name => `\t"${name}"\n`)
        .join('') +
      `)\n\n${recipe}\n\nfunc main() {\n\tseconds, _ := strconv.ParseInt(os.Args[4], 10, 64)\n` +
      '\tif !IsFromPostroad([]byte(os.Args[1]), os.Args[2], os.Args[3], time.Unix(seconds, 0)) {\n\t\tos.Exit(1)\n\t}\n}\n',
    command: ['go', 'run'],
    version: ['go', 'version'],
  },
]

const SECRETS = ['whsec_bmV3IHNlY3JldA==', 'whsec_b2xkIHNlY3JldA==']
const TIMESTAMP = 1_767_607_200
const BODY = '{"event":"contact.created","data":{"first_name":"Zoë"}}'

function folderOf(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'postroad-recipe-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

export function isThere({ version: [program = '', ...args] }: Recipe): boolean {
  return spawnSync(program, args, { stdio: 'ignore' }).status === 0
}

/** @param page the text of `docs/webhooks.md` */
export function recipeIn(page: string, language: string): string | undefined {
  const fences = [...page.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)\\n\`\`\`$`, 'gms'))]
  return fences.map(([, text]) => text).find(text => /is_?from_?postroad/i.test(text ?? ''))
}

export async function tryRecipe(
  t: Test,
  page: string,
  { language, file, program, command }: Recipe,
): Promise<void> {
  const recipe = recipeIn(page, language)
  t.ok(recipe)
  const path = join(folderOf(t), file)
  writeFileSync(path, program(recipe ?? ''))
  const run = (body: string, signature: string, secret: string, now: number): boolean => {
    const [name, ...args] = [...command, path, body, signature, secret, String(now)]
    try {
      execFileSync(name, args, { stdio: ['ignore', 'ignore', 'pipe'] })
      return true
    } catch (error) {
      const { status, stderr } = error as { status: number; stderr: Buffer }
      // go run says so of every program that ends with 1.
      t.match([status, String(stderr).replace(/^exit status 1\n$/, '')], [1, ''], 'no error but a verdict')
      return false
    }
  }
  const { 'X-Service-Signature': signature = '' } = signatureFields(
    { deliveryId: 'd', timestamp: TIMESTAMP, body: BODY },
    SECRETS,
  )
  const [newest = ''] = SECRETS
  for (const secret of SECRETS) t.ok(run(BODY, signature, secret, TIMESTAMP + 299), 'both secrets')
  t.notOk(run(BODY, signature, 'whsec_other', TIMESTAMP), 'another secret')
  t.notOk(run(`${BODY} `, signature, newest, TIMESTAMP), 'another body')
  t.notOk(run(BODY, signature, newest, TIMESTAMP + 301), 'too old')
  t.notOk(run(BODY, signature.replace(/t=\d+/, `t=${TIMESTAMP + 1}`), newest, TIMESTAMP), 'another time')
  for (const nonsense of ['', 'x', 't=1', 'v1=', `t=${TIMESTAMP},v1=`, `t=${TIMESTAMP},v1=00`])
    t.notOk(run(BODY, nonsense, newest, TIMESTAMP), nonsense || 'nothing')
}
