/** How many lists, segments and tags a workspace has at most. */
import t from 'tap'
import { MAX_LISTS, MAX_SEGMENTS, MAX_TAGS } from '../../src/audience/audience-parts.js'
import { openTestAppliance } from '../support/program/appliance.js'

/** Columns of each table beside id, workspace and name, with what stands in them. */
const TABLES = [
  {
    ...{ things: 'lists', most: MAX_LISTS },
    rest: { type: "'static'", is_public: 0, double_opt_in: 0, member_count: 0 },
  },
  {
    ...{ things: 'segments', most: MAX_SEGMENTS },
    rest: { name_folded: "'n' || n", conditions: `'{"match":"all","rules":[]}'` },
  },
  { things: 'tags', most: MAX_TAGS, rest: { name_folded: "'n' || n", contact_count: 0 } },
] as const

const MADE_AT_THE_SHELL: Readonly<Record<string, readonly string[]>> = {
  lists: ['lists', 'create', 'one more'],
  tags: ['tags', 'add', 'one more', 'ann@one.test'],
}

for (const { things, most, rest } of TABLES)
  // proves: Errors > limit_reached
  // answers: POST /lists: limit_reached; POST /lists/{id}/restore: limit_reached; POST /segments: limit_reached
  // answers: POST /segments/{id}/restore: limit_reached; POST /tags: limit_reached
  // answers: POST /tags/{id}/restore: limit_reached; PUT /contacts: limit_reached
  t.test(`a workspace has at most so many ${things}; where one is deleted there is room again`, async t => {
    const postroad = await openTestAppliance(t)
    const key = await postroad.makeKey()
    const post = (name: string) => postroad.post(`/api/v1/${things}`, { name }, { key })
    postroad.sql(
      `with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${most - 1})
       insert into ${things} (id, workspace_id, name, created_at, updated_at, ${Object.keys(rest).join(', ')})
       select 'id' || n, '${postroad.workspaceId}', 'n' || n, 0, 0, ${Object.values(rest).join(', ')} from numbers`,
    )
    await postroad.post('/api/v1/contacts', { email: 'ann@one.test' }, { key })
    const last = await post('the last one')
    t.equal(last.status, 201)
    t.match(await post('one more'), {
      status: 403,
      body: { error: { code: 'limit_reached', message: `a workspace has at most ${most} ${things}` } },
    })
    if (things === 'tags')
      t.match(
        await postroad.put('/api/v1/contacts', { email: 'new@one.test', tags: ['one more'] }, { key }),
        {
          status: 403,
          body: { error: { code: 'limit_reached' } },
        },
      )
    const command = MADE_AT_THE_SHELL[things]
    if (command) {
      const { status, err } = await postroad.run(...command, '--workspace', postroad.workspaceId)
      t.match({ status, err }, { status: 1, err: `at most ${most} ${things}` })
    }
    const deleted = await postroad.delete(`/api/v1/${things}/${last.body.data.id}`, { key })
    t.equal(deleted.status, 200)
    t.equal((await post('one more')).status, 201)
    t.match(
      await postroad.post(`/api/v1/${things}/${last.body.data.id}/restore`, {}, { key }),
      { status: 403, body: { error: { code: 'limit_reached' } } },
      'nor is one restored beyond it',
    )
  })
