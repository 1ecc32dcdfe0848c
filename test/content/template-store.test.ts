/** Templates on both databases. */
import {
  findTemplate,
  findVersion,
  insertTemplate,
  listTemplates,
  listVersions,
  markTemplateDeleted,
  updateTemplate,
  type Template,
} from '../../src/content/templates/template-store.js'
import t from 'tap'
import { eachDatabase } from '../support/db/database.js'
import { NOW } from '../support/mailroom.js'

const template = (id: string, more: Partial<Template> = {}): Template => ({
  id,
  workspaceId: 'w1',
  name: `Template ${id}`,
  description: null,
  html: '<p>Hi</p>',
  structure: null,
  version: 1,
  createdAt: NOW,
  updatedAt: NOW,
  ...more,
})
const page = { limit: 10, offset: 0 }

eachDatabase(
  t,
  "a template has its newest version's content, and every version is kept",
  async (t, database) => {
    const next = template('a', {
      html: '<p>Two</p>',
      structure: '{"blocks":[]}',
      version: 2,
      updatedAt: NOW + 1,
    })
    await database.write(async tx => {
      await insertTemplate(tx.db, template('a'))
      await updateTemplate(tx.db, next)
    })
    t.same(await findTemplate(database.reader, 'w1', 'a'), next)
    t.match(await findVersion(database.reader, 'a', 1), { html: '<p>Hi</p>', createdAt: NOW })
    t.equal(await findVersion(database.reader, 'a', 3), undefined)
    const { items, total } = await listVersions(database.reader, 'a', { limit: 1, offset: 0 })
    t.match({ items, total }, { items: [{ version: 2 }], total: 2 })
  },
)

eachDatabase(
  t,
  'templates are searched in their own workspace, newest first, deleted ones left out',
  async (t, database) => {
    await database.write(async tx => {
      for (const one of [
        template('a', { name: 'Grüße 50%' }),
        template('b', { name: 'grusse_2' }),
        template('c', { name: 'Grüße', workspaceId: 'w2' }),
        template('d', { name: 'Grüße' }),
      ])
        await insertTemplate(tx.db, one)
      t.equal(await markTemplateDeleted(tx.db, 'w1', 'd', NOW), true)
      t.equal(await markTemplateDeleted(tx.db, 'w1', 'd', NOW), false)
      t.equal(await markTemplateDeleted(tx.db, 'w1', 'c', NOW), false)
    })
    const found = async (search?: string) =>
      (await listTemplates(database.reader, 'w1', search, page)).items.map(({ id }) => id)
    t.same(await found(), ['b', 'a'])
    t.same(await found('GRUSSE'), ['b', 'a'])
    t.same(await found('grusse %'), ['a'])
    t.same(await found('grusse _'), ['b'])
    t.same(await found('\\'), [])
    t.equal(await findTemplate(database.reader, 'w1', 'd'), undefined)
    t.equal(await findTemplate(database.reader, 'w1', 'c'), undefined)
  },
)
