/** Texts of what things wait for, and how long sending takes: Spanish. */
import type { waiting as texts } from './en'

export const waiting: typeof texts = {
  waiting: {
    sentences: {
      hourly_limit: limit =>
        `En espera: el espacio de trabajo ha alcanzado su límite de ${limit} correos por hora.`,
      daily_limit: limit =>
        `En espera: el espacio de trabajo ha alcanzado su límite de ${limit} correos por día.`,
      rate: limit => `En espera por su propio ritmo de ${limit} correos por hora.`,
      sending_hours: () => 'En espera de su horario de envío.',
      usual_hour: () => 'En espera de la hora en que los próximos destinatarios suelen leer.',
      hold: () => 'Retenido hasta que alguien lo reanude.',
      restore_hold: () =>
        'En espera: el servidor se restauró de una copia de seguridad y no envía nada hasta que se libere su cola.',
      back_off: () => 'En espera: los servidores de destino pidieron ir más despacio o no respondían.',
      site_rate: limit => `En espera: los servidores de destino reciben ${limit} mensajes por minuto.`,
      retry: () => 'En espera de otro intento tras un fallo temporal.',
      ab_test: () => 'En espera del resultado de la prueba A/B.',
      queue_full: () => 'En espera de que se entreguen sus correos en cola.',
      earlier_import: () => 'En espera de una importación anterior.',
      disk: () => 'En espera: el servidor de correo no puede guardar más.',
    },
    short: {
      hourly_limit: 'Límite por hora',
      daily_limit: 'Límite por día',
      rate: 'Ritmo propio',
      sending_hours: 'Horario de envío',
      usual_hour: 'Hora habitual',
      hold: 'Retenido',
      restore_hold: 'Retenido tras restaurar',
      back_off: 'Pausa de envío',
      site_rate: 'Ritmo de los servidores',
      retry: 'Próximo intento',
      ab_test: 'Prueba A/B',
      queue_full: 'Cola llena',
      earlier_import: 'Importación anterior',
      disk: 'Disco lleno',
    },
    remedies: {
      limit: 'Un operador puede aumentar el límite.',
      fixed: 'Esto queda fijado al enviar la campaña; una copia puede tener otros ajustes.',
      winner: 'Elija el ganador para continuar de inmediato.',
    },
    links: { workspace: 'Cambiar el límite', delivery: 'Ver la cola', health: 'Ver el estado' },
    label: 'Espera',
    until: moment => `Continúa: ${moment}.`,
    due: 'Ahora',
    campaign: (name, reason) => `«${name}» espera: ${reason}`,
    takes: how => `El envío tarda unos ${how} con los límites actuales.`,
    takesMonths: 'El envío tarda más de 90 días con los límites actuales.',
    because: {
      hourly_limit: limit => `El espacio de trabajo puede enviar ${limit} correos por hora.`,
      daily_limit: limit => `El espacio de trabajo puede enviar ${limit} correos por día.`,
      rate: limit => `La campaña envía ${limit} correos por hora.`,
      sending_hours: () => 'La campaña solo se envía en su horario de envío.',
      usual_hour: () => 'Cada destinatario recibe el correo a su hora habitual.',
      ab_test: () => 'Entretanto se decide la prueba A/B.',
    },
  },
}
