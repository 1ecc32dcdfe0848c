/**
 * Recognizes files that are not text, by their first octets, to say what they are instead of reading them as CSV.
 *
 * Sources: [MS-CFB] §2.2 (signature), APPNOTE.TXT §4.3.7 (local file header), ECMA-376-2 §10 (`[Content_Types].xml`), ODF 1.2 part 3 §3.3
 * (`mimetype` comes first, not compressed), RFC 1952 §2.3.1, PDF 32000-1 §7.5.2. Pure.
 */

/** Octets that suffice. */
export const KIND_OCTETS = 4_096

const OLE2 = Buffer.from([0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1])

/** @param beginning the first `KIND_OCTETS` of the file @returns what to say; undefined if it may be text */
export function refusalOfKind(beginning: Buffer): string | undefined {
  if (beginning.subarray(0, OLE2.length).equals(OLE2))
    return 'this is an old Excel workbook (.xls); save it as CSV'
  const start = beginning.toString('latin1', 0, KIND_OCTETS)
  if (start.startsWith('PK\x03\x04')) return archiveRefusal(start)
  if (start.startsWith('\x1f\x8b'))
    return 'this is a gzip archive; unpack it, or send it with Content-Encoding: gzip'
  if (start.startsWith('%PDF-'))
    return 'this is a PDF document; import the spreadsheet it was made from, saved as CSV'
  if (/^(?:\xef\xbb\xbf)?\s{0,20}<(?:!doctype|html|head|body|table|\?xml)[\s>]/i.test(start))
    return 'this is a web page or XML file, though its name may say .xls; open it in a spreadsheet and save it as CSV'
  return undefined
}

/** @param start of a ZIP archive */
function archiveRefusal(start: string): string {
  if (start.includes('mimetypeapplication/vnd.oasis.opendocument.'))
    return 'this is an OpenDocument spreadsheet (.ods); save it as CSV'
  if (start.includes('Index/')) return 'this is an Apple Numbers document; export it as CSV'
  if (start.includes('[Content_Types].xml') || start.includes('xl/') || start.includes('_rels/'))
    return 'this is an Excel workbook; save it as CSV'
  return 'this is a ZIP archive; unpack it and import the CSV file inside'
}
