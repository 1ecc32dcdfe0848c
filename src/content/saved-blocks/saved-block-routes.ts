/** Saved blocks in the REST API. */
import Type, { type Static } from 'typebox'
import { isoTime } from '../../core/moments.js'
import { DONE, Done, Id, Moment } from '../../http/answer/answer-fields.js'
import { cursorQuery, nameSearch } from '../../http/pagination.js'
import { Tagged } from '../../http/preconditions.js'
import { listRoute, route, type Route } from '../../http/route.js'
import { StructureSchema } from '../blocks/structure.js'
import { listSavedBlocks, type SavedBlock, type SavedBlockHead } from './saved-block-store.js'
import {
  changeSavedBlock,
  createSavedBlock,
  deleteSavedBlock,
  getSavedBlock,
  MAX_BLOCKS,
  MAX_SAVED_BLOCKS,
  savedBlockEtag,
  type SavedBlockParts,
} from './saved-blocks.js'

const STRUCTURE_EXAMPLE = {
  blocks: [
    {
      id: 'addresses',
      type: 'columns',
      content: {
        columns: [
          { blocks: [{ id: 'shop', type: 'header', content: { text: '1 High Street', level: 3 } }] },
          {
            blocks: [
              { id: 'way', type: 'button', content: { text: 'Find us', url: 'https://shop.example/' } },
            ],
          },
        ],
      },
    },
  ],
}

const SavedStructureSchema = Type.Object(
  { blocks: { ...StructureSchema.properties.blocks, minItems: 1, maxItems: MAX_BLOCKS } },
  {
    additionalProperties: false,
    title: 'SavedBlockStructure',
    examples: [STRUCTURE_EXAMPLE],
    description: 'Blocks as in the `json_structure` of a template, without `settings`.',
  },
)
const Name = Type.String({ minLength: 1, maxLength: 200 })
/** Blocks are validated separately (`blocks/read-structure.ts`), so that errors name the block. */
const Structure = Type.Unsafe<Readonly<Record<string, unknown>>>(
  Type.Object({}, { shown: SavedStructureSchema }),
)

const NewSavedBlockBody = Type.Object(
  { name: Name, json_structure: Structure },
  { additionalProperties: false, title: 'NewSavedBlock' },
)
const SavedBlockChangesBody = Type.Object(
  { name: Type.Optional(Name), json_structure: Type.Optional(Structure) },
  { additionalProperties: false, title: 'SavedBlockChanges' },
)

const headFields = {
  id: Id(),
  name: Type.String(),
  is_sandbox: Type.Boolean(),
  created_at: Moment(),
  updated_at: Moment(),
}
const SavedBlockHeadSchema = Type.Object(headFields, { title: 'SavedBlockHead' })
const SavedBlockSchema = Type.Object(
  {
    ...headFields,
    json_structure: Type.Object({}, { shown: SavedStructureSchema }),
  },
  { title: 'SavedBlock' },
)

const Params = Type.Object({ id: Type.String({ maxLength: 64 }) })
/** 256 KB, at worst escaped sixfold in JSON. */
const BODY_LIMIT = 2 * 1_024 * 1_024
/** JSON values in a structure with many blocks. */
const BODY_VALUES = 50_000
const CHAPTER = { chapter: 'Saved blocks' }
const EXAMPLE = { name: 'Our addresses', json_structure: STRUCTURE_EXAMPLE }

const EXAMPLE_ANSWER = {
  ...EXAMPLE,
  id: '0192f000-0000-7000-8000-0000000000b1',
  is_sandbox: false,
  created_at: '2026-01-05T10:00:00.000Z',
  updated_at: '2026-01-05T10:00:00.000Z',
}

export function savedBlockRoutes(parts: SavedBlockParts): Route[] {
  return [...readingRoutes(parts), ...changingRoutes(parts)]
}

function readingRoutes({ database }: SavedBlockParts): Route[] {
  return [
    listRoute({
      ...CHAPTER,
      method: 'GET',
      path: '/saved-blocks',
      access: 'templates:read',
      operationId: 'listSavedBlocks',
      summary: 'List saved blocks, newest first.',
      query: Type.Object({ ...cursorQuery, ...nameSearch }, { additionalProperties: false }),
      item: SavedBlockHeadSchema,
      async handle({ principal: { workspaceId, isSandbox }, query }, page) {
        const found = await listSavedBlocks(database.slowReader, workspaceId, query.search, page)
        return { ...found, items: found.items.map(head => headToApi(head, isSandbox)) }
      },
    }),
    route({
      ...CHAPTER,
      method: 'GET',
      path: '/saved-blocks/:id',
      access: 'templates:read',
      operationId: 'getSavedBlock',
      hasEtag: true,
      summary: 'Get a saved block.',
      params: Params,
      response: SavedBlockSchema,
      exampleAnswer: EXAMPLE_ANSWER,
      errors: ['not_found'],
      async handle({ principal: { workspaceId, isSandbox }, params }) {
        return tagged(await getSavedBlock(database.reader, workspaceId, params.id), isSandbox)
      },
    }),
  ]
}

function changingRoutes(parts: SavedBlockParts): Route[] {
  return [
    route({
      ...CHAPTER,
      method: 'POST',
      path: '/saved-blocks',
      access: 'templates:write',
      operationId: 'createSavedBlock',
      hasEtag: true,
      summary: 'Save blocks under a name.',
      description:
        'One block or several in order, with those that they hold. They are validated as those of a template are, and have at most 256 KB ' +
        `as JSON and rendered. Returns 403 \`limit_reached\` if the workspace has ${MAX_SAVED_BLOCKS}.`,
      body: NewSavedBlockBody,
      bodyLimit: BODY_LIMIT,
      bodyValues: BODY_VALUES,
      example: EXAMPLE,
      response: SavedBlockSchema,
      exampleAnswer: EXAMPLE_ANSWER,
      status: 201,
      errors: ['limit_reached'],
      async handle({ principal: { workspaceId, isSandbox, actor }, body }) {
        return tagged(await createSavedBlock(parts, { workspaceId, actor }, body), isSandbox)
      },
    }),
    route({
      ...CHAPTER,
      method: 'PATCH',
      path: '/saved-blocks/:id',
      access: 'templates:write',
      operationId: 'updateSavedBlock',
      hasEtag: true,
      checksEtag: true,
      summary: 'Update a saved block.',
      description:
        'Only the given fields change. Templates into which the block was inserted hold copies and stay as they are.',
      params: Params,
      body: SavedBlockChangesBody,
      bodyLimit: BODY_LIMIT,
      bodyValues: BODY_VALUES,
      example: { name: 'Our addresses' },
      response: SavedBlockSchema,
      exampleAnswer: EXAMPLE_ANSWER,
      errors: ['not_found'],
      async handle({ principal: { workspaceId, isSandbox, actor }, params, body, precondition }) {
        const block = await changeSavedBlock(parts, { workspaceId, actor }, params.id, body, precondition)
        return tagged(block, isSandbox)
      },
    }),
    route({
      ...CHAPTER,
      method: 'DELETE',
      path: '/saved-blocks/:id',
      access: 'templates:write',
      operationId: 'deleteSavedBlock',
      checksEtag: true,
      summary: 'Delete a saved block.',
      description: 'Templates into which it was inserted stay as they are.',
      params: Params,
      response: Done,
      errors: ['not_found'],
      async handle({ principal: { workspaceId, actor }, params, precondition }) {
        await deleteSavedBlock(parts, { workspaceId, actor }, params.id, precondition)
        return DONE
      },
    }),
  ]
}

function headToApi(
  { id, name, createdAt, updatedAt }: SavedBlockHead,
  isSandbox: boolean,
): Static<typeof SavedBlockHeadSchema> {
  return {
    id,
    name,
    is_sandbox: isSandbox,
    created_at: isoTime(createdAt),
    updated_at: isoTime(updatedAt),
  }
}

function tagged(block: SavedBlock, isSandbox: boolean): Tagged<Static<typeof SavedBlockSchema>> {
  const structure = JSON.parse(block.structure) as object
  return new Tagged({ ...headToApi(block, isSandbox), json_structure: structure }, savedBlockEtag(block))
}
