/** Links of the documentation, in the repository and as the package ships it. */
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'

function markdownIn(path: string): string[] {
  if (!statSync(path).isDirectory()) return path.endsWith('.md') ? [path] : []
  return readdirSync(path).flatMap(name => markdownIn(join(path, name)))
}

/** As GitHub makes them of headings. */
function anchorsOf(file: string): string[] {
  const headings = readFileSync(file, 'utf8').match(/^#+ .*$/gm) ?? []
  return headings.map(heading =>
    heading
      .replace(/^#+ /, '')
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )
}

/** Made by a build, a place on the server, or the pattern of a name. */
const NO_SOURCE = /^(dist|build)\/|^\/|NNNN/

function deadLinks(files: readonly string[]): string[] {
  return files.flatMap(file =>
    [...readFileSync(file, 'utf8').matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, target = '']) => target)
      .filter(target => !/^[a-z]+:/i.test(target) && !isAlive(file, target))
      .map(target => `${file}: ${target}`),
  )
}

function isAlive(file: string, target: string): boolean {
  const [path = '', anchor] = target.split('#')
  const meant = path === '' ? file : join(dirname(file), path)
  return existsSync(meant) && (anchor === undefined || anchorsOf(meant).includes(anchor))
}

t.test('no link of the documentation is dead', async t => {
  const files = ['README.md', 'CHANGELOG.md', 'docs', 'config', 'src'].flatMap(markdownIn)
  t.ok(files.length > 15)
  t.same(deadLinks(files), [])
})

t.test('what the pages about the sources call a file or folder is there', async t => {
  const known = ['src', 'test', 'bench', 'docs', 'config', 'systemd'].flatMap(folder =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map(file => join(folder, file)),
  )
  const isThere = (path: string) =>
    known.some(file => {
      const below = `/${file}`
      return path.endsWith('/') ? below.includes(`/${path}`) : below.endsWith(`/${path}`)
    })
  const pages = [...markdownIn('src'), ...markdownIn('docs/decisions')]
  t.ok(pages.length > 15)
  const named = pages.flatMap(page =>
    [...readFileSync(page, 'utf8').matchAll(/`(\w[\w./-]*(?:\/|\.(?:ts|js|svelte|css|html|md|toml)))`/g)].map(
      ([, path = '']) => ({ page, path }),
    ),
  )
  t.ok(named.length > 150)
  t.same(
    named
      .filter(({ path }) => !NO_SOURCE.test(path) && !isThere(path))
      .map(({ page, path }) => `${page}: ${path}`),
    [],
  )
})

t.test('no link of the packaged documentation is dead', async t => {
  const folder = t.testdir({})
  execFileSync(process.execPath, ['packaging/documentation.js', folder], { stdio: 'pipe' })
  // What the package's script puts beside it.
  for (const name of ['NEWS.gz', 'copyright']) writeFileSync(join(folder, name), '')
  const files = markdownIn(folder)
  t.ok(files.length > 15)
  t.same(deadLinks(files), [])
  const readme = readFileSync(join(folder, 'README.md'), 'utf8')
  t.match(readme, '[changes](NEWS.gz) · [licence: Apache 2.0](copyright)')
  t.notMatch(readme, /\]\(src\//)
})
