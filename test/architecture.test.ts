/**
 * Holds src/ to its own rules: floors, no circles, SQL only in stores, the outside world only in world/.
 *
 * Reads every file with the TypeScript parser, so that neither a comment nor a string counts as code. A finding names
 * file, line and rule.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import ts from 'typescript'

/** Layers: which folder may import which. `src/ARCHITECTURE.md` lists them. */
const FLOORS: Readonly<Record<string, number>> = {
  core: 0,
  world: 0,
  mail: 1,
  cluster: 2,
  config: 2,
  db: 2,
  events: 2,
  http: 2,
  resource: 2,
  scheduler: 2,
  nameserver: 2,
  smtp: 2,
  accounts: 3,
  audience: 3,
  certificates: 3,
  content: 3,
  deliverability: 3,
  health: 3,
  messages: 4,
  queue: 4,
  inbound: 5,
  msa: 5,
  mta: 5,
  tracking: 5,
  analytics: 6,
  automations: 6,
  campaigns: 6,
  feeds: 6,
  metrics: 6,
  console: 6,
  webhooks: 6,
  appliance: 7,
  'server.ts': 7,
  cli: 8,
  'main.ts': 8,
  'check-node.ts': 8,
}

/** Of the folders on one floor most know nothing of each other; these may. */
const NEIGHBOURS: Readonly<Record<string, readonly string[]>> = {
  world: ['core'],
  cluster: ['db', 'http'],
  events: ['db'],
  scheduler: ['db'],
  resource: ['cluster', 'config', 'db', 'events', 'http', 'scheduler'],
  audience: ['accounts', 'deliverability'],
  queue: ['messages'],
  feeds: ['campaigns'],
  'server.ts': ['appliance'],
  'main.ts': ['cli'],
}

/**
 * Order of the rooms inside a folder, lowest first: a room imports only rooms named before it. Rooms that share a line know nothing of
 * each other. Files that stand beside the rooms are not listed; that they form no circle with them is checked for all folders.
 */
const ROOMS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  campaigns: [
    ['model'],
    ['archive'],
    ['ab-test', 'preflight', 'results'],
    ['expansion'],
    ['sending'],
    ['rest'],
    ['resource.ts'],
  ],
  http: [['answer'], ['body'], ['public'], ['openapi']],
  db: [['migrations'], ['faults'], ['postgres', 'sqlite'], ['copy']],
  queue: [['pacing'], ['claiming'], ['delivery'], ['operator']],
  'console/web': [['i18n'], ['api'], ['state'], ['lib'], ['shell', 'sign-in'], ['screens']],
}

/** Folders whose rooms still import each other in circles. None may be added. */
const CIRCLES_LEFT: readonly string[] = ['audience', 'audience/transfer', 'automations', 'webhooks']

/** What one side may take of another, whatever the floors say. */
const NARROW_DOORS = [
  { from: 'mta', to: 'queue', only: ['queue/delivery-agent.ts'] },
  {
    from: 'mta',
    to: 'content',
    only: [
      'content/rendering/mail-plan.ts',
      'content/rendering/merging.ts',
      'content/rendering/plan-cache.ts',
      'content/rendering/relayed-plan.ts',
      'content/rendering/render-request.ts',
      'content/tracking/followed-url.ts',
    ],
  },
  { from: 'mta', to: 'db', only: [] },
  { from: 'mta', to: 'events', only: [] },
  { from: 'http', to: 'db', only: [] },
  { from: 'smtp', to: 'db', only: [] },
]

const QUERY_BUILDERS = new Set(['selectFrom', 'insertInto', 'updateTable', 'deleteFrom'])
const WORLD_MODULES = /^(node:)?(net|tls|dns|http|https|http2|dgram|dns\/promises|timers|timers\/promises)$/
const WORLD_CALLS = new Set([
  'Date.now',
  'Math.random',
  'performance.now',
  'setTimeout',
  'setInterval',
  'setImmediate',
  'fetch',
  'randomBytes',
  'randomUUID',
  'randomInt',
  'crypto.randomBytes',
  'crypto.randomUUID',
  'crypto.getRandomValues',
  'globalThis.fetch',
])
/** Named imports that bring the world in under a quieter name. */
const WORLD_IMPORTS = new Set(['randomBytes', 'randomUUID', 'randomInt', 'generateKeyPair', 'performance'])
const ENVIRONMENT_FILE = 'config/environment.ts'

const SOURCE = join(process.cwd(), 'src')

interface Import {
  /** Path below src/ for our own files, else the module's name. */
  readonly target: string
  readonly isOwn: boolean
  readonly isTypeOnly: boolean
  readonly names: readonly string[]
  readonly line: number
}

interface Source {
  /** Below src/, e.g. `queue/claiming/claim.ts`. */
  readonly path: string
  readonly text: string
  readonly tree: ts.SourceFile
  readonly imports: readonly Import[]
}

/** The console's front end is a program of its own, with the browser's world. */
const FRONT_END = join('console', 'web')
const names = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' }).sort()
const sources = names
  .filter(name => name.endsWith('.ts') && !name.startsWith(FRONT_END))
  .map(name => readSource(name, readFileSync(join(SOURCE, name), 'utf8')))
const frontEnd = names
  .filter(name => name.startsWith(FRONT_END) && /\.(ts|svelte)$/.test(name))
  .map(name => readSource(name, scriptOf(name, readFileSync(join(SOURCE, name), 'utf8'))))

/** Of a component only its scripts, each line where it was. */
function scriptOf(name: string, text: string): string {
  if (!name.endsWith('.svelte')) return text
  const markup = /(?:^|<\/script>)(?:(?!<script)[^])*(?:<script[^>]*>|$)/g
  return text.replace(markup, outside => outside.replace(/[^\n]/g, ''))
}

function readSource(path: string, text: string): Source {
  const tree = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)
  const imports: Import[] = []
  visit(tree, node => {
    if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) {
      if (!node.moduleSpecifier || !ts.isStringLiteral(node.moduleSpecifier)) return
      imports.push(toImport(path, node.moduleSpecifier.text, isTypeOnly(node), namesOf(node), lineOf(node)))
    } else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      const [specifier] = node.arguments
      const name = specifier && ts.isStringLiteral(specifier) ? specifier.text : '(computed)'
      imports.push(toImport(path, name, false, [], lineOf(node)))
    } else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
      const { literal } = node.argument
      if (ts.isStringLiteral(literal)) imports.push(toImport(path, literal.text, true, [], lineOf(node)))
    }
  })
  return { path, text, tree, imports }
}

function toImport(
  path: string,
  specifier: string,
  isTypeOnly: boolean,
  names: readonly string[],
  line: number,
): Import {
  const isOwn = specifier.startsWith('.')
  const target = isOwn ? join(dirname(path), specifier).replace(/\.js$/, '.ts') : specifier
  return { target, isOwn, isTypeOnly, names, line }
}

function isTypeOnly(node: ts.ImportDeclaration | ts.ExportDeclaration): boolean {
  if (ts.isExportDeclaration(node)) return node.isTypeOnly
  const clause = node.importClause
  if (!clause) return false
  const { namedBindings } = clause
  const areAllTypes =
    !clause.name &&
    namedBindings !== undefined &&
    ts.isNamedImports(namedBindings) &&
    namedBindings.elements.length > 0 &&
    namedBindings.elements.every(element => element.isTypeOnly)
  return clause.phaseModifier === ts.SyntaxKind.TypeKeyword || areAllTypes
}

function namesOf(node: ts.ImportDeclaration | ts.ExportDeclaration): string[] {
  const bindings = ts.isImportDeclaration(node) ? node.importClause?.namedBindings : undefined
  return bindings && ts.isNamedImports(bindings)
    ? bindings.elements
        .filter(element => !element.isTypeOnly)
        .map(element => (element.propertyName ?? element.name).text)
    : []
}

function visit(node: ts.Node, look: (node: ts.Node) => void): void {
  look(node)
  node.forEachChild(child => visit(child, look))
}

function lineOf(node: ts.Node): number {
  const tree = node.getSourceFile()
  return tree.getLineAndCharacterOfPosition(node.getStart(tree)).line + 1
}

/** First folder below src/, or the file itself at the top. */
function partOf(path: string): string {
  return path.split('/')[0] ?? path
}

/** Every place where the rule is broken, as `src/queue/claiming/claim.ts:12 ...`. */
function findings(
  rule: (source: Source) => Iterable<readonly [line: number, what: string]>,
  files: readonly Source[] = sources,
): string[] {
  return files.flatMap(source =>
    [...rule(source)].map(([line, what]) => `src/${source.path}:${line} ${what}`),
  )
}

/** Dotted name of what is called or read, e.g. `Date.now`; undefined for anything longer than that. */
function dottedName(node: ts.Expression): string | undefined {
  if (ts.isIdentifier(node)) return node.text
  if (ts.isPropertyAccessExpression(node) && ts.isIdentifier(node.expression))
    return `${node.expression.text}.${node.name.text}`
  return undefined
}

t.test('every folder stands on a floor', async t => {
  t.ok(sources.length > 100, 'the files were found')
  const unknown = [...new Set(sources.map(source => partOf(source.path)))].filter(part => !(part in FLOORS))
  t.same(unknown, [], 'give a new folder its floor here and in src/ARCHITECTURE.md')
})

t.test('a folder imports its own floor or lower, types included', async t => {
  const broken = findings(function* ({ path, imports }) {
    const from = partOf(path)
    for (const { target, isOwn, line } of imports) {
      const to = partOf(target)
      if (!isOwn || from === to) continue
      const [own = NaN, other = NaN] = [FLOORS[from], FLOORS[to]]
      const isBelow = other < own
      const isNeighbour = other === own && (NEIGHBOURS[from] ?? []).includes(to)
      if (!isBelow && !isNeighbour) yield [line, `imports ${target}: ${from} (${own}), ${to} (${other})`]
    }
  })
  t.same(broken, [])
})

t.test('what passes between two folders passes through the door made for it', async t => {
  const broken = findings(function* ({ path, imports }) {
    for (const { from, to, only } of NARROW_DOORS)
      for (const { target, isOwn, line } of imports)
        if (isOwn && partOf(path) === from && partOf(target) === to && !only.includes(target))
          yield [line, `imports ${target}: ${from} takes of ${to} only [${only.join(', ')}]`]
  })
  t.same(broken, [])
})

/** The room of a folder that a file is in: a subfolder, or the file itself; undefined: it is elsewhere. */
function roomOf(folder: string, path: string): string | undefined {
  return path.startsWith(`${folder}/`) ? path.slice(folder.length + 1).split('/')[0] : undefined
}

const allNames = new Set(names)
/** The front end's imports leave out the ending: `./screens` is `screens.ts` and not the folder beside it. */
function withEnding(target: string): string {
  return allNames.has(`${target}.ts`) ? `${target}.ts` : target
}

t.test('a room of a folder imports only rooms below its own, types included', async t => {
  const broken = findings(
    function* ({ path, imports }) {
      for (const [folder, order] of Object.entries(ROOMS)) {
        const from = roomOf(folder, path)
        const floorOf = (room: string) => order.findIndex(rooms => rooms.includes(room))
        if (from === undefined || floorOf(from) === -1) continue
        for (const { target, isOwn, line } of imports) {
          const to = isOwn ? roomOf(folder, withEnding(target)) : undefined
          if (to !== undefined && to !== from && floorOf(to) >= floorOf(from))
            yield [line, `imports ${target}, which is not below ${folder}/${from}`]
        }
      }
    },
    [...sources, ...frontEnd],
  )
  t.same(broken, [])
  const rooms = new Set(
    [...sources, ...frontEnd].flatMap(({ path }) =>
      Object.keys(ROOMS).map(folder => `${folder}/${roomOf(folder, path)}`),
    ),
  )
  const listed = Object.entries(ROOMS).flatMap(([folder, order]) =>
    order.flat().map(room => `${folder}/${room}`),
  )
  const isFolder = (room: string) => !/\.(ts|svelte)$/.test(room) && !room.endsWith('/undefined')
  t.same(
    [...rooms].filter(room => isFolder(room) && !listed.includes(room)),
    [],
    'give a new room its place here',
  )
  t.same(
    listed.filter(room => !rooms.has(room)),
    [],
    'every room named here exists',
  )
})

t.test('the rooms of a folder do not import each other in circles', async t => {
  const folders = new Set(sources.flatMap(({ path }) => parentsOf(path)))
  const found = [...folders].filter(folder => hasCircle(importsBetweenRooms(folder)))
  t.same(found, CIRCLES_LEFT)
})

/** Folders that hold a file, the outermost first: `a`, `a/b` for `a/b/c.ts`. */
function parentsOf(path: string): string[] {
  const parts = path.split('/').slice(0, -1)
  return parts.map((_, at) => parts.slice(0, at + 1).join('/'))
}

function importsBetweenRooms(folder: string): ReadonlyMap<string, ReadonlySet<string>> {
  const between = new Map<string, Set<string>>()
  for (const { path, imports } of sources) {
    const from = roomOf(folder, path)
    if (from === undefined) continue
    const targets = between.get(from) ?? new Set()
    between.set(from, targets)
    for (const { target, isOwn } of imports) {
      const to = isOwn ? roomOf(folder, target) : undefined
      if (to !== undefined && to !== from) targets.add(to)
    }
  }
  return between
}

/** Takes away what imports nothing that is left, again and again; a circle stays. */
function hasCircle(between: ReadonlyMap<string, ReadonlySet<string>>): boolean {
  const left = new Map(between)
  for (;;) {
    const free = [...left].filter(([, targets]) => ![...targets].some(target => left.has(target)))
    if (free.length === 0) return left.size > 0
    for (const [room] of free) left.delete(room)
  }
}

t.test('every import leads to a file in src/', async t => {
  const paths = new Set(sources.map(source => source.path))
  const broken = findings(function* ({ path, imports }) {
    for (const { target, isOwn, line } of imports)
      // `check-node.ts` loads the program where it is built.
      if ((isOwn && !paths.has(target)) || (target === '(computed)' && path !== 'check-node.ts'))
        yield [line, `imports ${target}`]
  })
  t.same(broken, [])
})

t.test('no file imports itself by way of others, types included', async t => {
  const targets = new Map(
    sources.map(({ path, imports }) => [path, imports.filter(({ isOwn }) => isOwn).map(i => i.target)]),
  )
  const finished = new Set<string>()
  const circles: string[] = []
  const walk = (path: string, trail: readonly string[]): void => {
    const start = trail.indexOf(path)
    if (start >= 0) circles.push([...trail.slice(start), path].join(' -> '))
    if (start >= 0 || finished.has(path)) return
    for (const target of targets.get(path) ?? []) walk(target, [...trail, path])
    finished.add(path)
  }
  for (const { path } of sources) walk(path, [])
  t.same(circles, [])
})

t.test('SQL is written only in stores and in db/', async t => {
  const broken = findings(function* ({ path, tree, imports }) {
    if (/(^|[/-])store\.ts$/.test(path) || partOf(path) === 'db') return
    for (const { target, isTypeOnly, names, line } of imports)
      if (target === 'kysely' && !isTypeOnly) yield [line, `imports ${names.join(', ')} of kysely`]
    const calls: [number, string][] = []
    visit(tree, node => {
      if (ts.isPropertyAccessExpression(node) && QUERY_BUILDERS.has(node.name.text))
        calls.push([lineOf(node), `calls ${node.name.text}`])
    })
    yield* calls
  })
  t.same(broken, [])
})

t.test('time, randomness, names and sockets come only through world/', async t => {
  const broken = findings(function* ({ path, tree, imports }) {
    // What runs in a browser has that browser's world.
    if (partOf(path) === 'world' || path.includes('/browser/')) return
    for (const { target, isTypeOnly, names, line } of imports) {
      if (isTypeOnly) continue
      if (WORLD_MODULES.test(target)) yield [line, `imports ${target}`]
      for (const name of names)
        if (/^(node:)?(crypto|perf_hooks)$/.test(target) && WORLD_IMPORTS.has(name))
          yield [line, `imports ${name} of ${target}`]
    }
    const uses: [number, string][] = []
    visit(tree, node => {
      const called = ts.isCallExpression(node) ? dottedName(node.expression) : undefined
      if (called !== undefined && WORLD_CALLS.has(called)) uses.push([lineOf(node), `calls ${called}`])
      if (ts.isNewExpression(node) && dottedName(node.expression) === 'Date' && !node.arguments?.length)
        uses.push([lineOf(node), 'makes a Date of this moment'])
    })
    yield* uses
  })
  t.same(broken, [])
})

t.test('the environment is read in one file', async t => {
  const broken = findings(function* ({ path, tree, imports }) {
    if (path === ENVIRONMENT_FILE) return
    for (const { target, line } of imports)
      if (/^(node:)?process$/.test(target)) yield [line, `imports ${target}`]
    const uses: [number, string][] = []
    visit(tree, node => {
      if (ts.isPropertyAccessExpression(node) && dottedName(node) === 'process.env')
        uses.push([lineOf(node), 'reads process.env'])
    })
    yield* uses
  })
  t.same(broken, [])
})

t.test('every file has a name that says something, and none only passes others on', async t => {
  const broken = findings(function* ({ path, tree }) {
    if (/(^|\/)(index|utils?|helpers?)\.ts$/.test(path)) yield [1, 'says nothing by its name']
    for (const statement of tree.statements)
      if (ts.isExportDeclaration(statement) && statement.moduleSpecifier?.getText().includes("'."))
        yield [lineOf(statement), "passes on another file's exports"]
  })
  t.same(broken, [])
})

/** Above this a file is named in the test's output, for a reader to judge whether it tells more than one story. Nothing bounds it. */
const LONG_FILE_LINES = 800

/** Names that say what the file is. */
const SPEAKING_NAME = /(routes?|schema|store|resource|events|parts|example)\.ts$/

t.test('a longer file opens by saying what it is, unless its name does', async t => {
  const broken = findings(function* ({ path, text }) {
    if (SPEAKING_NAME.test(path) || text.split('\n').length <= 100) return
    if (!/^(#![^\n]*\n)?\/\*\*/.test(text)) yield [1, 'has no header comment']
  })
  t.same(broken, [])
  for (const { path, text } of sources) {
    const lines = text.split('\n').length - 1
    if (lines > LONG_FILE_LINES) t.comment(`src/${path} has ${lines} lines`)
  }
})

t.test('the rules find what breaks them', async t => {
  const source = readSource(
    'mail/example.ts',
    `import { connect } from 'node:net'
     import type { Server } from 'node:net'
     import { type Socket } from 'node:net'
     import { claim } from '../queue/claim.js'
     const text = 'Date.now()' // Date.now()
     const later = await import('../db/tables.js')
     type Far = import('../http/app.js').AppParts`,
  )
  t.match(source.imports, [
    { target: 'node:net', isTypeOnly: false, names: ['connect'], line: 1 },
    { target: 'node:net', isTypeOnly: true, line: 2 },
    { target: 'node:net', isTypeOnly: true, line: 3 },
    { target: 'queue/claim.ts', isOwn: true, line: 4 },
    { target: 'db/tables.ts', isOwn: true, line: 6 },
    { target: 'http/app.ts', isOwn: true, isTypeOnly: true, line: 7 },
  ])
  const calls: string[] = []
  visit(source.tree, node => {
    if (ts.isCallExpression(node)) calls.push(dottedName(node.expression) ?? '')
  })
  t.notMatch(calls, ['Date.now'], 'strings and comments are no code')
})
