/** Public pages in Spanish. */
import type { PageTexts } from './page-texts.js'

export const es: PageTexts = {
  notFound: {
    title: 'Aquí no hay nada',
    text: 'Esta página no existe. Quizá se perdió una parte del enlace; ábralo de nuevo desde el correo.',
  },
  badLink: {
    title: 'Este enlace no funciona',
    text: 'Quizá se perdió una parte por el camino. Ábralo desde el propio correo o cópielo entero. No se cambió nada.',
  },
  tooMany: {
    title: 'Demasiadas solicitudes',
    text: 'De su red llegaron muchas solicitudes en poco tiempo. Vuelva a intentarlo dentro de un minuto.',
  },
  unavailable: {
    title: 'No es posible en este momento',
    text: 'Vuelva a intentarlo dentro de unos minutos. No se cambió nada.',
  },
  broken: {
    title: 'Algo salió mal',
    text: 'La culpa es nuestra y quedó anotado. Vuelva a intentarlo más tarde.',
  },
  unreadable: {
    title: 'No se pudo leer',
    text: 'Lo que se envió no es un formulario nuestro. Vuelva atrás e inténtelo de nuevo. No se cambió nada.',
  },
  wrongMethod: {
    title: 'Así no',
    text: 'Esta dirección no acepta ese tipo de solicitud. Abra el enlace desde el correo.',
  },
  sentBy: name => `Correo de ${name}`,
  unsubscribe: {
    title: 'Darse de baja',
    question: (email, sender) => `¿Quiere que ${email} no reciba más boletines ni ofertas de ${sender}?`,
    stillComes: 'El correo que usted mismo pide, como las facturas, seguirá llegando.',
    button: 'Darme de baja',
    doneTitle: 'Se ha dado de baja',
    done: (email, sender) => `${email} ya no recibe boletines ni ofertas de ${sender}.`,
    mistake: '¿Fue un error, o quiere elegir lo que recibe?',
    toPreferences: 'Preferencias de correo',
  },
  preferences: {
    title: 'Preferencias de correo',
    about: (email, sender) => `Lo que ${email} recibe de ${sender}.`,
    lists: 'Quiero recibir',
    noLists: 'No hay temas para elegir.',
    save: 'Guardar',
    saved: 'Se guardó su elección.',
    allTitle: 'Todo',
    allText: sender => `Ningún boletín ni oferta de ${sender}.`,
    unsubscribeAll: 'Darme de baja de todo',
    unsubscribed: (email, sender) => `${email} no recibe boletines ni ofertas de ${sender}.`,
    subscribeAgain: 'Suscribirme de nuevo',
    subscribedAgain: (email, sender) => `${email} vuelve a recibir correo de ${sender}.`,
    stopped: (email, sender) =>
      `El correo a ${email} se detuvo: no se pudo entregar, se marcó como spam o ${sender} lo detuvo. ` +
      `Escriba a ${sender} si quiere recibirlo de nuevo.`,
  },
  view: {
    title: 'Correo',
    gone: {
      title: 'Este correo ya no se guarda',
      text: 'Los correos se pueden leer aquí durante un tiempo después de su envío. El de su buzón es el mismo.',
    },
  },
  archive: {
    title: 'Correos anteriores',
    empty: 'Aquí no se ha publicado nada todavía.',
    older: 'Correos más antiguos',
    newest: 'Correos más recientes',
    feed: 'Suscribirse a esta página (RSS)',
    gone: {
      title: 'Este correo no está publicado',
      text: 'Puede que se haya retirado. Los demás correos están en el archivo.',
    },
  },
  form: {
    email: 'Dirección de correo',
    required: 'obligatorio',
    optional: 'opcional',
    choose: 'Elija una opción',
    button: 'Suscribirme',
    leaveEmpty: 'Deje este campo vacío',
    sendAgain:
      'Envíe el formulario otra vez. Un campo oculto estaba relleno, quizá por su navegador; ahora vuelve a estar vacío.',
    faultsTitle: 'Revise lo que ha escrito',
    missing: label => `${label}: este campo es obligatorio.`,
    badEmail: 'A esta dirección de correo no se puede escribir.',
    badNumber: label => `${label}: tiene que ser un número.`,
    badDate: label => `${label}: tiene que ser una fecha, como 2026-05-31.`,
    badChoice: label => `${label}: elija una de las opciones.`,
    tooLong: label => `${label}: es demasiado largo.`,
    thanks: { title: 'Gracias', text: 'Hemos recibido su suscripción.' },
    checkInbox: email => ({
      title: 'Falta un paso',
      text: `Hemos enviado un mensaje a ${email}. Ábralo y confirme allí. Si no llega, mire en el correo no deseado.`,
    }),
    gone: { title: 'Este formulario está cerrado', text: 'Ya no admite suscripciones.' },
    toForm: 'Ir al formulario',
  },
  optIn: {
    title: 'Confirme su suscripción',
    question: (email, sender) => `¿Quiere que ${email} reciba correo de ${sender}?`,
    button: 'Confirmar',
    ignore: 'Si no lo pidió usted, cierre esta página; no pasará nada.',
    done: (email, sender) => ({
      title: 'Se ha suscrito',
      text: `Desde ahora ${email} recibe correo de ${sender}. Cada mensaje tiene un enlace para darse de baja.`,
    }),
    expired: {
      title: 'Este enlace ha caducado',
      text: 'Solo servía durante unos días. Suscríbase de nuevo y llegará otro mensaje.',
    },
    mailSubject: sender => `Confirme su suscripción: ${sender}`,
    mailText: (email, sender) =>
      `Alguien, probablemente usted, quiere que ${email} reciba correo de ${sender}. Confirme que es así.`,
    mailButton: 'Confirmar la suscripción',
    mailIgnore: 'Si no fue usted, no haga nada: no llegará nada.',
    mailExpires: days => `El enlace sirve durante ${days} días.`,
  },
}
