/** Declared routes of no resource in particular, one for each thing that the frame does. */
import Type from 'typebox'
import { AppError } from '../../../src/core/errors.js'
import { openNetworkAccess } from '../../../src/http/network-access.js'
import { listingOf, PageQuery } from '../../../src/http/pagination.js'
import { listRoute, openRoute, Reply, route, type Route } from '../../../src/http/route.js'

const Note = Type.Object({ id: Type.String(), text: Type.String() }, { title: 'Note' })
const NoteParams = Type.Object({ id: Type.String({ maxLength: 64 }) })

const notes = Array.from({ length: 5 }, (_, n) => ({ id: `n${n + 1}`, text: `note ${n + 1}` }))

/** `Idle` has no operation. */
export const TEST_CHAPTERS = { Email: 'Mail and notes.', Idle: 'Nothing.' }

export const testRoutes: readonly Route[] = [
  openRoute({
    method: 'GET',
    path: '/open',
    access: 'public',
    operationId: 'getOpen',
    chapter: 'Email',
    summary: 'Needs no key.',
    response: Type.Object({ ok: Type.Boolean() }),
    handle: async () => ({ ok: true }),
  }),
  openRoute({
    method: 'GET',
    path: '/local',
    isAtRoot: true,
    isBare: true,
    access: {
      permission: 'system:read',
      scope: 'appliance',
      isListed: openNetworkAccess({ networks: ['127.0.0.0/8', '::1/128'], hosts: [] }),
    },
    summary: 'Only from this machine.',
    response: Type.Object({ local: Type.Boolean() }),
    handle: async () => ({ local: true }),
  }),
  listRoute({
    method: 'GET',
    path: '/notes',
    access: 'email:read',
    operationId: 'listNotes',
    chapter: 'Email',
    summary: 'Five notes.',
    query: PageQuery,
    item: Note,
    handle: async (_, page) =>
      listingOf(
        notes,
        page,
        note => note,
        ({ id }) => id,
      ),
  }),
  route({
    method: 'POST',
    path: '/notes',
    access: 'email:send',
    operationId: 'createNote',
    chapter: 'Email',
    summary: 'Takes a note.',
    body: Type.Object(
      { text: Type.String(), extra: Type.Optional(Type.Unknown()) },
      { additionalProperties: false },
    ),
    response: Note,
    status: 201,
    otherAnswers: { 202: Note },
    errors: ['duplicate', 'limit_reached'],
    async handle({ body }) {
      if (body.text === 'taken') throw new AppError('duplicate', 'there is such a note', { path: 'text' })
      const note = { id: 'n9', text: body.text }
      return body.text === 'later' ? new Reply(202, note) : note
    },
  }),
  route({
    method: 'GET',
    path: '/notes/:id',
    access: 'email:read',
    operationId: 'getNote',
    chapter: 'Email',
    summary: 'One note.',
    params: NoteParams,
    response: Note,
    errors: ['not_found'],
    async handle({ params }) {
      const note = notes.find(({ id }) => id === params.id)
      if (!note) throw new AppError('not_found', 'no such note')
      return note
    },
  }),
  route({
    method: 'DELETE',
    path: '/notes/:id',
    access: 'key',
    operationId: 'deleteNote',
    chapter: 'Email',
    summary: 'Breaks.',
    params: NoteParams,
    response: Type.Object({ success: Type.Boolean() }),
    async handle() {
      throw new Error('secret detail of the inside')
    },
  }),
]
