/**
 * Copies README, docs/ and config/ to the package's documentation:  node packaging/documentation.js FOLDER
 *
 * A link to what the package has under another name leads there; one to what it does not have becomes its text. Fails: a link to what
 * is not in the repository either ends the build.
 */
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'

/** Files of the repository that the package has under another name. */
const RENAMED = { 'CHANGELOG.md': 'NEWS.gz', LICENSE: 'copyright' }
/** For development, or installed elsewhere. */
const LEFT_OUT = ['config/dev.toml', 'config/starter.toml', 'docs/hacking.md', 'docs/decisions']

const [folder] = process.argv.slice(2)
if (folder === undefined) throw new Error('usage: node packaging/documentation.js FOLDER')
for (const one of ['README.md', 'docs', 'config']) cpSync(one, join(folder, one), { recursive: true })
for (const one of LEFT_OUT) rmSync(join(folder, one), { recursive: true })
for (const file of markdownIn(folder)) {
  const text = readFileSync(file, 'utf8')
  writeFileSync(
    file,
    text.replace(/(!?)\[([^\]]*)\]\(([^)\s]+)\)/g, (link, image, words, target) =>
      rewritten(relative(folder, file), { link, image, words, target }),
    ),
  )
}

function rewritten(file, { link, image, words, target }) {
  if (/^(#|[a-z]+:)/i.test(target)) return link
  const [path = ''] = target.split('#')
  const meant = join(dirname(file), path)
  const renamed = RENAMED[meant]
  if (renamed !== undefined) return `${image}[${words}](${relative(dirname(file), renamed)})`
  if (existsSync(join(folder, meant))) return link
  if (!existsSync(resolve(meant))) throw new Error(`${file}: ${target} is a dead link`)
  return words
}

function markdownIn(path) {
  if (!statSync(path).isDirectory()) return path.endsWith('.md') ? [path] : []
  return readdirSync(path).flatMap(name => markdownIn(join(path, name)))
}
