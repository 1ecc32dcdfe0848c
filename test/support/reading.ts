/** What a reader sees of a mail, by a parser that nobody here wrote: what has to be the same on both ends of the way. */
import { simpleParser } from 'mailparser'

/** White space at the end of the text apart: base64 and quoted-printable end differently. */
export async function readingOf(message: Buffer): Promise<object> {
  const mail = await simpleParser(message, {
    skipHtmlToText: true,
    skipTextToHtml: true,
    skipImageLinks: true,
  })
  const attachments = await Promise.all(
    mail.attachments.map(async ({ filename, contentType, contentId, contentDisposition, content }) => ({
      filename,
      contentType,
      contentId,
      contentDisposition,
      // An attached message is read as well.
      content: contentType === 'message/rfc822' ? await readingOf(content) : content.toString('hex'),
    })),
  )
  return {
    subject: mail.subject,
    from: mail.from?.value,
    to: mail.to && [mail.to].flat().map(({ value }) => value),
    cc: mail.cc && [mail.cc].flat().map(({ value }) => value),
    // mailparser splits them at white space only.
    references: [mail.references ?? []]
      .flat()
      .join('')
      .match(/<[^>]*>/g),
    text: mail.text?.trimEnd(),
    html: mail.html && mail.html.trimEnd(),
    attachments,
  }
}
