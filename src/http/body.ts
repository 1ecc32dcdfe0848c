/**
 * Reads a JSON request body, bounded in size before it is held in memory.
 *
 * Fails with validation_error, path `body`: too large, not UTF-8, not JSON, compressed.
 */
import type { IncomingMessage } from 'node:http'
import getRawBody from 'raw-body'
import { AppError } from '../core/errors.js'
import { formatSize } from '../core/units.js'

const strictUtf8 = new TextDecoder('utf-8', { fatal: true })

export async function readJsonBody(request: IncomingMessage, limitBytes: number): Promise<unknown> {
  if (request.headers['content-encoding'] !== undefined)
    throw invalid('compressed request bodies are not accepted; send the JSON as it is')
  const bytes = await readBytes(request, limitBytes)
  if (bytes.length === 0) throw invalid('body is required: send a JSON object')
  let text: string
  try {
    text = strictUtf8.decode(bytes)
  } catch {
    throw invalid('body is not valid UTF-8')
  }
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw invalid('body is not valid JSON')
  }
}

async function readBytes(request: IncomingMessage, limitBytes: number): Promise<Buffer> {
  try {
    return await getRawBody(request, { limit: limitBytes, length: request.headers['content-length'] ?? null })
  } catch (error) {
    switch ((error as { type?: string }).type) {
      case 'entity.too.large':
        throw invalid(`body is larger than the ${formatSize(limitBytes)} that this request may have`)
      case 'request.size.invalid':
      case 'request.aborted':
        throw invalid('body ended before its announced length')
      default:
        throw error
    }
  }
}

function invalid(message: string): AppError {
  return new AppError('validation_error', message, { path: 'body' })
}
