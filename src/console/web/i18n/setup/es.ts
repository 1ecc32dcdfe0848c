/** Texts of the setup checklist: Spanish. */
import type { setup as texts } from './en'

export const setup: typeof texts = {
  setup: {
    title: 'Puesta en marcha',
    intro: (done, all) => `${done} de ${all} pasos hechos. Cada uno se marca solo.`,
    dismiss: 'Ocultar',
    dismissed: 'La lista está oculta. Se puede volver a mostrar en los ajustes del espacio de trabajo.',
    show: 'Mostrar la lista de puesta en marcha',
    allDone: 'Todos los pasos de la lista están hechos.',
    done: 'Hecho',
    open: 'Pendiente',
    steps: {
      company: {
        title: 'Nombre y dirección postal',
        why: 'El correo comercial debe decir quién lo envía y adónde escribir; el pie muestra ambas cosas.',
        go: 'A los ajustes',
      },
      sender: {
        title: 'Un dominio desde el que enviar',
        why: 'Los receptores confían en el correo firmado para el dominio de su remitente. Publique los registros; se vuelven a comprobar solos.',
        go: 'A los dominios',
      },
      delivery: {
        title: 'Lo que ven otros servidores de correo',
        why: 'Miran el nombre de este servidor, su DNS inverso y su registro SPF antes de aceptar correo; y el puerto 25 debe estar abierto.',
        go: 'A las comprobaciones',
      },
      mail: {
        title: 'Un primer correo',
        why: 'Cree una clave, póngala en POSTROAD_KEY y ejecute esto. El paso está hecho en cuanto se acepta el correo.',
        go: 'Crear una clave',
      },
      contacts: {
        title: 'Primeros contactos',
        why: 'Las campañas y automatizaciones son para contactos: importe un archivo o añada uno a mano.',
        go: 'A los contactos',
      },
      campaign: {
        title: 'Una primera campaña',
        why: 'Una campaña envía un texto a una lista o un segmento, e informa de quién lo leyó.',
        go: 'A las campañas',
      },
    },
    showMessage: 'Mostrar el correo',
    language: 'Lenguaje',
    sample: 'Petición',
    checking: 'Las comprobaciones están en curso…',
    notRight: 'Todavía no está bien:',
  },
}
