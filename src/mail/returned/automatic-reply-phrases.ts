/**
 * Words by which automatic answers are known, in the languages of the programs that send them.
 *
 * Read by `automatic-reply.ts`. Data only. Subjects are matched from their beginning, because people quote the words in
 * the middle of theirs.
 */

/** Out of office, on holiday, automatic answer. */
export const VACATION_SUBJECTS: readonly RegExp[] = [
  // English
  /^(?:re: ?)?(?:auto(?:matic(?:ally)?|mated)?[ -]?(?:generated )?(?:reply|response|answer|responder|rep)\b|auto ?: |auto-?re(?:ply|sponse)\b)/i,
  /^(?:re: ?)?(?:i am |i'm )?(?:currently )?(?:out of (?:the )?office|ooo\b|away from (?:my|the) (?:office|mail|desk|e-?mail)|on (?:annual leave|vacation|holiday|leave|maternity|parental)|away (?:until|till|from|on)\b|vacation (?:reply|message|notice|response)|holiday (?:reply|message|notice))/i,
  /^(?:re: ?)?thank(?:s| you) for (?:your (?:e-?mail|message|mail|enquiry|inquiry)|contacting)/i,
  /^\[?(?:auto-?reply|autoresponse|autorespond|auto response|vacation)\]?\b/i,
  // German
  /^(?:re: ?|aw: ?)?(?:automatische (?:antwort|beantwortung|r\u00fcckantwort|abwesenheits)|abwesenheits(?:notiz|nachricht|benachrichtigung|assistent|meldung)|abwesend\b|abwesenheit\b|au(?:\u00df|ss)er haus|nicht im (?:b\u00fcro|hause)|im urlaub|urlaub(?:sbenachrichtigung|snotiz)?\b)/i,
  // French
  /^(?:re ?: ?)?(?:r\u00e9ponse automatique|message d'absence|absence du bureau|absent du bureau|absence\b|absent(?:e)? (?:du|jusqu|pour)|en cong\u00e9s?\b|r\u00e9pondeur automatique)/i,
  // Spanish, Portuguese, Italian
  /^(?:re: ?)?(?:respuesta autom\u00e1tica|autorespuesta|fuera de (?:la )?oficina|ausente\b|de vacaciones|ausencia\b)/i,
  /^(?:re: ?)?(?:resposta autom\u00e1tica|fora do escrit\u00f3rio|aus\u00eancia (?:do|tempor\u00e1ria)|de f\u00e9rias)/i,
  /^(?:re: ?|r: ?)?(?:risposta automatica|fuori (?:sede|ufficio)|assente\b|assenza\b|in ferie)/i,
  // Dutch, Danish, Swedish, Norwegian, Finnish, Icelandic
  /^(?:re: ?)?(?:automatisch antwoord|afwezig(?:heid)?\b|niet aanwezig|buiten kantoor|met vakantie)/i,
  /^(?:re: ?|sv: ?)?(?:autosvar|automatisk svar|automatiskt svar|ikke til stede|frav\u00e6r|fr\u00e5nvaro|p\u00e5 semester|p\u00e5 ferie|autoreply|automaattinen vastaus|poissa\b|lomalla|sj\u00e1lfvirkt svar)/i,
  // Polish, Czech, Slovak, Hungarian, Romanian, Croatian, Slovene, the Baltic languages
  /^(?:re: ?|odp: ?)?(?:automatyczna odpowied\u017a|autoodpowied\u017a|nieobecno\u015b\u0107|poza biurem|automatick\u00e1 odpov\u011b\u010f|automatick\u00e1 odpove\u010f|nep\u0159\u00edtomnost|mimo kancel\u00e1\u0159|automatikus v\u00e1lasz|h\u00e1zon k\u00edv\u00fcl|r\u0103spuns automat|automatski odgovor|samodejni odgovor|automaatvastus|autom\u0101tisk\u0101 atbilde|automatinis atsakymas)/i,
  // Russian, Ukrainian, Bulgarian, Serbian, Greek, Turkish
  /^(?:re: ?)?(?:\u0430\u0432\u0442\u043e\u043c\u0430\u0442\u0438\u0447\u0435\u0441\u043a\u0438\u0439 \u043e\u0442\u0432\u0435\u0442|\u0430\u0432\u0442\u043e\u043e\u0442\u0432\u0435\u0442|\u0432\u043d\u0435 \u043e\u0444\u0438\u0441\u0430|\u0430\u0432\u0442\u043e\u043c\u0430\u0442\u0438\u0447\u043d\u0430 \u0432\u0456\u0434\u043f\u043e\u0432\u0456\u0434\u044c|\u0430\u0432\u0442\u043e\u043c\u0430\u0442\u0438\u0447\u0435\u043d \u043e\u0442\u0433\u043e\u0432\u043e\u0440|\u0430\u0443\u0442\u043e\u043c\u0430\u0442\u0441\u043a\u0438 \u043e\u0434\u0433\u043e\u0432\u043e\u0440|\u03b1\u03c5\u03c4\u03cc\u03bc\u03b1\u03c4\u03b7 \u03b1\u03c0\u03ac\u03bd\u03c4\u03b7\u03c3\u03b7|otomatik (?:yan\u0131t|cevap)|ofis d\u0131\u015f\u0131nda)/i,
  // Japanese, Chinese, Korean
  /\u81ea\u52d5\u5fdc\u7b54|\u81ea\u52d5\u8fd4\u4fe1|\u4e0d\u5728(?:\u901a\u77e5|\u306e)|\u81ea\u52a8(?:\u7b54\u590d|\u56de\u590d)|\u81ea\u52d5(?:\u56de\u8986|\u7b54\u8986)|\uc790\ub3d9 ?(?:\ud68c\uc2e0|\uc751\ub2f5|\ud68c\ub2f5)|\ubd80\uc7ac ?\uc911/,
  // Hebrew, Arabic, Vietnamese, Thai, Indonesian
  /^(?:re: ?)?(?:\u05de\u05e2\u05e0\u05d4 \u05d0\u05d5\u05d8\u05d5\u05de\u05d8\u05d9|\u05ea\u05e9\u05d5\u05d1\u05d4 \u05d0\u05d5\u05d8\u05d5\u05de\u05d8\u05d9\u05ea|\u0631\u062f \u062a\u0644\u0642\u0627\u0626\u064a|\u0627\u0644\u0631\u062f \u0627\u0644\u062a\u0644\u0642\u0627\u0626\u064a|tr\u1ea3 l\u1eddi t\u1ef1 \u0111\u1ed9ng|\u0e15\u0e2d\u0e1a\u0e01\u0e25\u0e31\u0e1a\u0e2d\u0e31\u0e15\u0e42\u0e19\u0e21\u0e31\u0e15\u0e34|balasan otomatis)/i,
]

/** The sender is to prove that he is a human, or that he wrote the mail. */
export const CHALLENGE_SUBJECTS: readonly RegExp[] = [
  /^(?:re: ?)?(?:please )?(?:confirm|verify|validate|authenticate) (?:that you (?:sent|are)|your (?:message|e-?mail|identity|mail) (?:to|so|for))/i,
  /^(?:re: ?)?(?:sender (?:verification|authentication|address verification)|(?:e-?mail )?(?:verification|confirmation) (?:required|needed|request) (?:for|to deliver))/i,
  /^\[?(?:spamarrest|boxbe|bluebottle|qurb|tmda|challenge[- ]response)\b/i,
  /\b(?:waiting for your confirmation|requires? (?:sender )?confirmation before delivery)/i,
]
export const CHALLENGE_TEXTS: readonly RegExp[] = [
  /(?:spam ?arrest|boxbe|bluebottle|mailblocks|0spam|tmda)\b.{0,200}\b(?:verif|confirm|approve|guest list)/is,
  /(?:your (?:message|e-?mail)|the message you sent) (?:to .{1,200}? )?(?:is|has been) (?:being )?(?:held|waiting|quarantined).{0,200}(?:confirm|verify|click|reply)/is,
  /(?:to (?:deliver|release|complete delivery of) (?:it|your (?:message|e-?mail)|this message)),? .{0,60}(?:click|reply to this|confirm)/is,
  /prove (?:that )?you are (?:a )?(?:human|real person|not a (?:robot|spammer))/i,
]

/** Read or received, without the report of RFC 8098. */
export const RECEIPT_SUBJECTS: readonly RegExp[] = [
  /^(?:read|gelesen|lu|le\u00eddo|lida|letto|gelezen|l\u00e4st|l\u00e6st|lest|luettu|przeczytano|p\u0159e\u010dteno|\u043f\u0440\u043e\u0447\u0442\u0435\u043d\u043e|okundu|\u958b\u5c01\u6e08\u307f|\u5df2\u8bfb|\u5df2\u8b80)\s?[:\uff1a]/i,
  /^(?:read receipt|return receipt|lesebest\u00e4tigung|accus\u00e9 de (?:lecture|r\u00e9ception)|confirmaci\u00f3n de lectura|not read\s?:)/i,
]
