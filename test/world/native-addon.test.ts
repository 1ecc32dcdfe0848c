/** Where the executable loads the native part of SQLite from. */
import t from 'tap'
import { mkdtempSync, readdirSync, readFileSync, fstatSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { candidateFolders, loadFromAnyOf } from '../../src/world/embedded/native-addon.js'

const octets = Buffer.from('a library')
const emptyFolder = () => mkdtempSync(join(tmpdir(), 'addon-'))

t.test('the file has no name, and its owner alone may open it', t => {
  const folder = emptyFolder()
  const path = loadFromAnyOf([folder], octets, { exports: {} }, (_module, path) => {
    t.equal(readFileSync(path, 'utf8'), 'a library')
    t.strictSame(readdirSync(folder), [])
  })
  const { mode, nlink } = fstatSync(Number(path.split('/').at(-1)))
  t.equal(mode & 0o777, 0o600)
  t.equal(nlink, 0)
  t.end()
})

t.test('if the file cannot be written or executed, the next folder is tried', t => {
  const folders = ['/nowhere', emptyFolder(), emptyFolder()]
  const tried: string[] = []
  const path = loadFromAnyOf(folders, octets, { exports: {} }, (_module, path) => {
    tried.push(path)
    if (tried.length === 1) throw new Error('failed to map segment from shared object')
  })
  t.equal(tried.length, 2)
  t.equal(path, tried[1])
  t.end()
})

t.test('if no folder works, the error lists those tried and why', t => {
  const forbid = () => {
    throw new Error('failed to map segment from shared object')
  }
  t.throws(() => loadFromAnyOf(['/nowhere', emptyFolder()], octets, { exports: {} }, forbid), {
    message: /\$TMPDIR.*\/nowhere: ENOENT.*failed to map segment/,
  })
  t.end()
})

t.test('folders of the service manager and of the user are tried, and no relative ones', t => {
  const folders = candidateFolders({
    RUNTIME_DIRECTORY: '/run/postroad:/run/other',
    STATE_DIRECTORY: '/var/lib/postroad',
    XDG_RUNTIME_DIR: 'relative',
  })
  t.equal(folders[0], '/run/postroad')
  t.ok(folders.includes('/var/lib/postroad'))
  t.notOk(folders.includes('relative'))
  t.strictSame([...new Set(folders)], folders)
  t.end()
})
