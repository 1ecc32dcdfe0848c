/**
 * Tells a report by its first characters, whatever its file is called, and has it read.
 *
 * Called in the reading thread for each attachment. Pure. Fails: throws a plain Error for a report that cannot be read;
 * what is no report at all (the mail's text) gives none.
 */
import { readDmarcReport } from './dmarc-report.js'
import type { ParsedReport } from '../reading/parser-protocol.js'
import { readTlsReport } from './tls-report.js'
import { unpack, type UnpackBudget } from './unpack.js'

/** RFC 8460 §4.4; a text may begin with a brace as well. */
const TLS_REPORT_NAMES = /"(?:organization-name|date-range|contact-info|report-id|policies)"/

/** @param attachment as attached, packed or not. @param budget of the mail it is in. @throws Error */
export function readReport(attachment: Buffer, budget?: UnpackBudget): ParsedReport[] {
  const octets = unpack(attachment, budget)
  const beginning = octets
    .toString('latin1', 0, 2_000)
    .replace(/^\xef\xbb\xbf/, '')
    .trimStart()
  if (beginning.startsWith('{') && TLS_REPORT_NAMES.test(beginning))
    return readTlsReport(octets.toString('utf8'))
  if (beginning.startsWith('<') && /<(?:\w{1,20}:)?feedback[\s>]/.test(beginning))
    return [readDmarcReport(octets)]
  return []
}
