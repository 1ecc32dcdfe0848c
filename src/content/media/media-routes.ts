/** The media library in the REST API. */
import Type, { type Static } from 'typebox'
import { AppError } from '../../core/errors.js'
import { isoTime } from '../../core/moments.js'
import { formatSize } from '../../core/units.js'
import { DONE, Done, Id, Moment, TextOrNull } from '../../http/answer/answer-fields.js'
import { cursorQuery } from '../../http/pagination.js'
import { Tagged } from '../../http/preconditions.js'
import { listRoute, route, uploadRoute, type Route } from '../../http/route.js'
import { forceQuery } from '../../resource/references.js'
import { listImages, mediaUsage, type MediaImage } from './media-store.js'
import {
  changeImage,
  deleteImage,
  getImage,
  imageEtag,
  readFileName,
  restoreImage,
  uploadImage,
  type MediaParts,
  type Uploading,
} from './media.js'
import { MEDIA_TYPES } from './reading/image.js'
import { VARIANT_WIDTHS } from './resizing/prepare-image.js'
import { fileUrl } from './served-images.js'

const MAX_ALT_TEXT = 1_000
const ALT_EXAMPLE = 'A red bicycle in front of a shop'

const MediaVariantSchema = Type.Object(
  {
    width: Type.Integer({ description: 'Pixels.' }),
    height: Type.Integer(),
    size: Type.Integer({ description: 'Bytes.' }),
    url: Type.String({ format: 'uri' }),
  },
  { title: 'MediaVariant' },
)

const MediaImageSchema = Type.Object(
  {
    id: Id(),
    file_name: Type.String(),
    alt_text: TextOrNull({
      description: 'What the image says, for people who do not see it. null: not given.',
    }),
    media_type: Type.Enum(Object.values(MEDIA_TYPES), { description: 'By the content of the file.' }),
    is_animated: Type.Boolean(),
    width: Type.Integer({ description: 'Pixels.' }),
    height: Type.Integer(),
    size: Type.Integer({ description: 'Bytes of the served file.' }),
    sha256: Type.String({
      description: 'Hash of the served file, hexadecimal.',
    }),
    url: Type.String({
      format: 'uri',
      description: 'Public, without a key. The file behind it never changes.',
    }),
    variants: Type.Array(MediaVariantSchema, {
      description: 'Smaller files of the same kind, in order of width.',
    }),
    is_sandbox: Type.Boolean(),
    created_at: Moment(),
    updated_at: Moment(),
  },
  { title: 'MediaImage' },
)

const MediaUsageSchema = Type.Object(
  {
    images: Type.Integer(),
    size: Type.Integer({ description: 'Bytes of all files, smaller ones included.' }),
    limit: Type.Integer({ description: 'Bytes allowed (`media.workspace_size`).' }),
    file_limit: Type.Integer({ description: 'Bytes allowed in one file (`media.file_size`).' }),
  },
  { title: 'MediaUsage' },
)

const FILE_NAME = 'Shown in the library; default: the name of the uploaded file.'
const ALT_TEXT = 'What the image says, for people who do not see it.'
const FIELDS = { file_name: FILE_NAME, alt_text: ALT_TEXT } as const

/** All of its octets are ASCII. */
const SMALLEST_GIF = 'GIF89a\u0001\0\u0001\0\0\0\0,\0\0\0\0\u0001\0\u0001\0\0\u0002\u0002D\u0001\0;'

const ImageParams = Type.Object({ id: Type.String({ maxLength: 64 }) })
const CHAPTER = { chapter: 'Media' }

export function mediaRoutes(parts: Uploading): Route[] {
  return [...readingRoutes(parts), uploadingRoute(parts), ...changingRoutes(parts)]
}

function readingRoutes({ database, limits, publicUrl }: Uploading): Route[] {
  return [
    listRoute({
      ...CHAPTER,
      method: 'GET',
      path: '/media',
      access: 'templates:read',
      operationId: 'listMedia',
      summary: 'List images, newest first.',
      query: Type.Object(
        {
          ...cursorQuery,
          search: Type.Optional(
            Type.String({
              maxLength: 200,
              description:
                'Words that must all occur in the file name or the alt text, ignoring case and accents.',
            }),
          ),
        },
        { additionalProperties: false },
      ),
      item: MediaImageSchema,
      async handle({ principal: { workspaceId, isSandbox }, query }, page) {
        const found = await listImages(database.slowReader, workspaceId, query.search, page)
        return { ...found, items: found.items.map(image => imageToApi(image, isSandbox, publicUrl)) }
      },
    }),
    route({
      ...CHAPTER,
      method: 'GET',
      path: '/media/usage',
      access: 'templates:read',
      operationId: 'getMediaUsage',
      summary: 'Get the size of the media library.',
      response: MediaUsageSchema,
      async handle({ principal: { workspaceId } }) {
        const { images, octets } = await mediaUsage(database.reader, workspaceId, 'live')
        return { images, size: octets, limit: limits.workspaceSizeBytes, file_limit: limits.fileSizeBytes }
      },
    }),
    route({
      ...CHAPTER,
      method: 'GET',
      path: '/media/:id',
      access: 'templates:read',
      operationId: 'getMedia',
      hasEtag: true,
      summary: 'Get an image.',
      params: ImageParams,
      response: MediaImageSchema,
      errors: ['not_found'],
      async handle({ principal: { workspaceId, isSandbox }, params }) {
        return tagged(await getImage(database.reader, workspaceId, params.id), isSandbox, publicUrl)
      },
    }),
  ]
}

function uploadingRoute(parts: Uploading): Route {
  const { limits, publicUrl } = parts
  return uploadRoute({
    ...CHAPTER,
    method: 'POST',
    path: '/media',
    access: 'templates:write',
    operationId: 'uploadMedia',
    hasEtag: true,
    summary: 'Upload an image.',
    description:
      `PNG, JPEG, GIF or WebP, at most ${formatSize(limits.fileSizeBytes)} (\`media.file_size\`) and ` +
      `${Math.floor(limits.pixels / 1_000_000)} million pixels (\`media.pixels\`). The content of the file decides, not its name or ` +
      'Content-Type. Metadata (place, camera, comments) is removed. Files of the same kind are made in the widths ' +
      `${VARIANT_WIDTHS.join(', ')} pixels if the image is wider and they are smaller; animations and GIFs stay as they are.\n\n` +
      'A file that is in the library already is not stored again: the response is 200 with its image. Returns 403 `limit_reached` if the ' +
      'library is full.',
    query: Type.Object(
      {
        file_name: Type.Optional(Type.String({ minLength: 1, maxLength: 200, description: FILE_NAME })),
        alt_text: Type.Optional(Type.String({ maxLength: MAX_ALT_TEXT, description: ALT_TEXT })),
      },
      { additionalProperties: false },
    ),
    upload: {
      octets: limits.fileSizeBytes,
      mediaTypes: [...Object.values(MEDIA_TYPES), 'application/octet-stream'],
      fields: FIELDS,
      example: SMALLEST_GIF,
    },
    response: MediaImageSchema,
    status: 201,
    otherAnswers: { 200: MediaImageSchema },
    errors: ['limit_reached'],
    async handle({ principal, query }, { pieces, fields, file }) {
      const { workspaceId, isSandbox, actor } = principal
      const texts = () => ({
        fileName: readFileName(fields.get('file_name') ?? query.file_name ?? file.name),
        altText: readAltText(fields.get('alt_text') ?? query.alt_text),
      })
      const { image, isNew } = await uploadImage(parts, { workspaceId, actor }, pieces, texts)
      return tagged(image, isSandbox, publicUrl, isNew ? 201 : 200)
    },
  })
}

function changingRoutes(parts: MediaParts): Route[] {
  const { publicUrl } = parts
  return [
    route({
      ...CHAPTER,
      method: 'PATCH',
      path: '/media/:id',
      access: 'templates:write',
      operationId: 'updateMedia',
      hasEtag: true,
      checksEtag: true,
      summary: 'Update the name and alt text of an image.',
      description: 'Only the given fields change; null clears alt_text. Its file and its URL stay the same.',
      params: ImageParams,
      body: Type.Object(
        {
          file_name: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
          alt_text: Type.Optional(
            Type.Union([Type.String({ maxLength: MAX_ALT_TEXT }), Type.Null()], { description: ALT_TEXT }),
          ),
        },
        { additionalProperties: false, title: 'MediaImageChanges' },
      ),
      example: { alt_text: ALT_EXAMPLE },
      response: MediaImageSchema,
      errors: ['not_found'],
      async handle({ principal, params, body, precondition }) {
        const { workspaceId, isSandbox, actor } = principal
        const fileName = readFileName(body.file_name)
        if (body.file_name !== undefined && fileName === undefined)
          throw new AppError('validation_error', 'file_name must not be empty', { path: 'file_name' })
        const texts = { fileName, altText: body.alt_text === null ? null : readAltText(body.alt_text) }
        const image = await changeImage(parts, { workspaceId, actor }, params.id, texts, precondition)
        return tagged(image, isSandbox, publicUrl)
      },
    }),
    route({
      ...CHAPTER,
      method: 'DELETE',
      path: '/media/:id',
      access: 'templates:write',
      operationId: 'deleteMedia',
      checksEtag: true,
      summary: 'Delete an image.',
      description:
        'Its files are no longer served, so mail that was sent with it shows its alt text. It can be restored for 30 days, unless ' +
        'the library is full and needs the space. Returns 409 naming the users if a template uses the image; `force=true` deletes it anyway.',
      params: ImageParams,
      query: forceQuery,
      response: Done,
      errors: ['not_found', 'conflict'],
      async handle({ principal: { workspaceId, actor }, params, query, precondition }) {
        await deleteImage(parts, { workspaceId, actor }, params.id, query.force === true, precondition)
        return DONE
      },
    }),
    route({
      ...CHAPTER,
      method: 'POST',
      path: '/media/:id/restore',
      access: 'templates:write',
      operationId: 'restoreMedia',
      hasEtag: true,
      summary: 'Restore a deleted image.',
      description: 'Its files are served again at the same URLs. Possible for 30 days after it was deleted.',
      params: ImageParams,
      response: MediaImageSchema,
      errors: ['not_found'],
      async handle({ principal: { workspaceId, isSandbox, actor }, params }) {
        return tagged(await restoreImage(parts, { workspaceId, actor }, params.id), isSandbox, publicUrl)
      },
    }),
  ]
}

/** @throws AppError validation_error */
function readAltText(text: string | undefined): string | null | undefined {
  if (text === undefined) return undefined
  if (text.length > MAX_ALT_TEXT)
    throw new AppError('validation_error', `alt_text must have at most ${MAX_ALT_TEXT} characters`, {
      path: 'alt_text',
    })
  return text.replace(/\p{Cc}+/gu, ' ').trim() || null
}

function tagged(
  image: MediaImage,
  isSandbox: boolean,
  publicUrl: string,
  status?: number,
): Tagged<Static<typeof MediaImageSchema>> {
  return new Tagged(imageToApi(image, isSandbox, publicUrl), imageEtag(image), status)
}

function imageToApi(
  image: MediaImage,
  isSandbox: boolean,
  publicUrl: string,
): Static<typeof MediaImageSchema> {
  const { kind } = image
  return {
    id: image.id,
    file_name: image.fileName,
    alt_text: image.altText,
    media_type: MEDIA_TYPES[kind],
    is_animated: image.isAnimated,
    width: image.width,
    height: image.height,
    size: image.octets,
    sha256: image.hash,
    url: fileUrl(publicUrl, kind, image),
    variants: image.variants.map(file => ({
      width: file.width,
      height: file.height,
      size: file.octets,
      url: fileUrl(publicUrl, kind, file),
    })),
    is_sandbox: isSandbox,
    created_at: isoTime(image.createdAt),
    updated_at: isoTime(image.updatedAt),
  }
}
