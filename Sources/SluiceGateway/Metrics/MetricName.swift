/// The metrics of `/metrics`. docs/operations/health-and-metrics.md describes them.
package enum MetricName: String, CaseIterable, Sendable {
    // Sessions
    case connections = "sluice_connections"
    case netRefusals = "sluice_net_refusals_total"
    case certificateEnd = "sluice_certificate_end_timestamp_seconds"
    case sessions = "sluice_sessions"
    case sessionsStarted = "sluice_sessions_started_total"
    case sessionsEnded = "sluice_sessions_ended_total"
    case sessionErrors = "sluice_session_errors_total"
    case egressBytes = "sluice_egress_bytes_total"
    case outboxBytes = "sluice_outbox_bytes"

    // Realm's protocol
    case realmSessions = "sluice_realm_sessions"
    case realmReceivedBytes = "sluice_realm_received_bytes_total"
    case realmSentBytes = "sluice_realm_sent_bytes_total"
    case realmUploads = "sluice_realm_uploads_total"
    case realmCompensatingWrites = "sluice_realm_compensating_writes_total"
    case realmErrors = "sluice_realm_errors_total"
    case realmCloses = "sluice_realm_closes_total"
    case realmDefects = "sluice_realm_defects_total"
    case realmClientFailures = "sluice_realm_client_failures_total"
    case realmPartitionRefusals = "sluice_realm_partition_refusals_total"

    // Uploads
    case uploads = "sluice_uploads_total"
    case uploadSeconds = "sluice_upload_seconds"
    case compensatingWrites = "sluice_compensating_writes_total"
    case replicasReplaced = "sluice_client_replicas_replaced_total"
    case refusedBytesLeftOut = "sluice_compensating_writes_left_out_bytes_total"

    // Subscriptions
    case bootstraps = "sluice_bootstraps_total"
    case bootstrapSeconds = "sluice_bootstrap_seconds"
    case bootstrapRows = "sluice_bootstrap_rows_total"
    case subscriptions = "sluice_subscriptions"

    // The path from PostgreSQL to the clients
    case capturedChanges = "sluice_captured_changes_total"
    case publishedRecords = "sluice_published_records_total"
    case deliveredChanges = "sluice_delivered_changes_total"
    case deliverySeconds = "sluice_delivery_seconds"
    case slotBytes = "sluice_slot_bytes"
    case slotBudget = "sluice_slot_budget_ratio"
    case watermarkLag = "sluice_watermark_lag_seconds"
    case feedBytes = "sluice_feed_bytes"
    case isPublisher = "sluice_publisher"
    case quarantined = "sluice_quarantined_rows"
    case refusedRecords = "sluice_refused_records_total"

    // Ingest
    case ingested = "sluice_ingested_objects_total"
    case ingestRefused = "sluice_ingest_refused_objects_total"
    case ingestDuplicates = "sluice_ingest_duplicates_total"
    case ingestDropped = "sluice_ingest_dropped_objects_total"
    case ingestLag = "sluice_ingest_lag_records"
    case ingestSeconds = "sluice_ingest_seconds"

    // Plugins
    case pluginCalls = "sluice_plugin_calls_total"
    case pluginSeconds = "sluice_plugin_seconds"
    case pluginRestarts = "sluice_plugin_restarts_total"
    case pluginFailures = "sluice_plugin_failures_total"
    case pluginOut = "sluice_plugin_out"
    case pluginSandbox = "sluice_plugin_sandbox_missing"
    case pluginCounts = "sluice_plugin_counts_total"
    case ruleGeneration = "sluice_rule_generation"
    case rulesRefused = "sluice_rules_refused_total"

    // Functions of the app
    case functionCalls = "sluice_function_calls_total"
    case functionFailures = "sluice_function_failures_total"
    case functionSeconds = "sluice_function_seconds"

    // Events of users
    case userEvents = "sluice_user_events_total"
    case userEventLag = "sluice_user_event_lag_seconds"
    case triggerCalls = "sluice_trigger_calls_total"
    case triggerFailures = "sluice_trigger_failures_total"
    case triggersBuried = "sluice_triggers_given_up_total"
    case triggerLag = "sluice_trigger_lag_records"
    case triggerLosses = "sluice_trigger_losses_total"

    // HTTP and users
    case httpRequests = "sluice_http_requests_total"
    case httpSeconds = "sluice_http_seconds"
    case logins = "sluice_logins_total"
    case loginFailures = "sluice_login_failures_total"
    case loginsLimited = "sluice_logins_limited_total"
    case mails = "sluice_mails_total"
    case adminRefused = "sluice_admin_refused_total"

    // Telemetry itself
    case spansExported = "sluice_trace_spans_exported_total"
    case spansDropped = "sluice_trace_spans_dropped_total"
    case libraryMetricsRefused = "sluice_library_metrics_refused_total"

    package enum Kind: String, Sendable { case counter, gauge, histogram }

    package var kind: Kind {
        if rawValue.hasSuffix("_total") { return .counter }
        return Self.histograms.contains(self) ? .histogram : .gauge
    }

    private static let histograms: Set<MetricName> = [
        .uploadSeconds, .bootstrapSeconds, .deliverySeconds, .ingestSeconds, .pluginSeconds, .functionSeconds, .httpSeconds,
    ]

    /// The name of the metric's label; nil if it has none.
    package var label: String? {
        switch self {
        case .sessionErrors, .adminRefused, .realmErrors: "code"
        case .realmSessions, .realmReceivedBytes, .realmSentBytes, .realmUploads, .realmCompensatingWrites, .realmDefects,
            .realmClientFailures, .realmPartitionRefusals:
            "sdk"
        case .netRefusals, .realmCloses: "reason"
        case .uploads, .httpRequests, .mails: "result"
        case .pluginCalls, .pluginSeconds, .pluginFailures: "hook"
        case .functionCalls, .functionFailures, .functionSeconds: "function"
        case .userEvents: "kind"
        case .triggerCalls, .triggerFailures, .triggersBuried, .triggerLag, .triggerLosses: "trigger"
        case .pluginSandbox: "part"
        case .pluginCounts: "name"
        case .pluginOut: "plugin"
        case .ingested, .ingestRefused, .ingestDuplicates, .ingestDropped, .ingestLag: "type"
        case .logins, .loginFailures: "provider"
        case .loginsLimited: "limit"
        default: nil
        }
    }

    package var help: String {
        switch self {
        case .connections: "Open connections, HTTP and WebSocket."
        case .certificateEnd: "The time at which a certificate of the client port expires first, in seconds since 1970; 0 without TLS."
        case .netRefusals: "Connections and requests refused or ended to protect the client port, by reason."
        case .sessions: "Open sessions of Sluice's protocol."
        case .sessionsStarted: "Sessions opened."
        case .sessionsEnded: "Sessions ended."
        case .sessionErrors: "Errors sent to clients, by code."
        case .egressBytes: "Bytes written to client connections."
        case .outboxBytes: "Bytes buffered for clients."
        case .realmSessions: "Open sessions of Realm's protocol, by SDK."
        case .realmReceivedBytes: "Bytes of messages from clients of Realm's protocol, by SDK."
        case .realmSentBytes: "Bytes of messages to clients of Realm's protocol, by SDK."
        case .realmUploads: "Upload messages of Realm's protocol that took effect, by SDK."
        case .realmCompensatingWrites: "Objects whose writes were undone at clients of Realm's protocol, by SDK."
        case .realmErrors: "Errors sent to clients of Realm's protocol, by code."
        case .realmCloses: "Connections of Realm's protocol that ended, and refused upgrades, by reason."
        case .realmDefects: "Messages withheld because they would have stopped the client, by SDK. Each is a defect of the gateway."
        case .realmClientFailures: "Messages that clients of Realm's protocol could not apply, by SDK."
        case .realmPartitionRefusals: "Connections refused because they ask for partition-based sync, by SDK."
        case .uploads: "Client changesets, by result."
        case .uploadSeconds: "From receiving a changeset to its commit."
        case .compensatingWrites: "Writes of clients that were undone."
        case .replicasReplaced: "Client replicas and client files that gave way to new ones of their users, as they exceed a limit."
        case .refusedBytesLeftOut: "Values of undone writes that are not kept, as they exceed a limit, in bytes."
        case .bootstraps: "Bootstraps started."
        case .bootstrapSeconds: "From a new subscription set to its last bootstrap message."
        case .bootstrapRows: "Rows sent in bootstraps."
        case .subscriptions: "Subscriptions in force."
        case .capturedChanges: "Row changes read from the replication slot."
        case .publishedRecords: "Records that the log has acknowledged."
        case .deliveredChanges: "Changes sent to sessions."
        case .deliverySeconds: "From commit in PostgreSQL to the client connection."
        case .slotBytes: "WAL that the replication slot retains."
        case .slotBudget: "The retained WAL as a share of max_slot_wal_keep_size; at 1 the slot is lost."
        case .watermarkLag: "Age of the newest commit that has been delivered."
        case .feedBytes: "Bytes read from the log and not yet below the watermark."
        case .isPublisher: "1 on the gateway that holds the replication slot."
        case .quarantined: "Rows that do not fit their classes and are not sent, as far as they are known."
        case .refusedRecords: "Records that the brokers rejected permanently; their rows are quarantined."
        case .ingested: "Asymmetric objects accepted, by type."
        case .ingestRefused: "Asymmetric objects rejected, by type."
        case .ingestDuplicates: "Accepted asymmetric objects whose primary keys already existed, by type."
        case .ingestDropped: "Asymmetric objects dropped by the rules, by type."
        case .ingestLag: "Unread records of a type's ingest topic, in this gateway's partitions."
        case .ingestSeconds: "From receiving an asymmetric object to its acknowledgement."
        case .pluginCalls: "Calls into rule plugins, by hook."
        case .pluginSeconds: "Time of a plugin call, by hook."
        case .pluginRestarts: "Plugin hosts that were replaced."
        case .pluginFailures: "Calls into rule plugins that were denied or failed, by hook."
        case .pluginOut: "1 while the calls of a plugin are rejected at once, because its hosts end repeatedly."
        case .pluginSandbox:
            "Plugins without a part of the sandbox: seccomp, landlock, privileges, threads, or a process of their own."
        case .pluginCounts: "Counters of plugins, by plugin and name."
        case .ruleGeneration: "The generation of rules in use: 1 at the start, one more with each applied edit."
        case .rulesRefused: "Rejected edits of rules."
        case .functionCalls: "Calls of functions that were sent to their services, by function."
        case .functionFailures: "Calls of functions that ended with an error, by function."
        case .functionSeconds: "Time of a call of a function with all attempts, by function."
        case .userEvents: "Events of users that were delivered, or removed as nothing receives them, by kind."
        case .userEventLag: "Age of the oldest event of a user that waits for the topic or for a trigger."
        case .triggerCalls: "Calls of triggers, by trigger."
        case .triggerFailures: "Calls of triggers that failed, by trigger."
        case .triggersBuried: "Events for which a trigger was given up, by trigger."
        case .triggerLag: "Records of a database trigger's topic that it is not done with, in this gateway's partitions."
        case .triggerLosses: "Gaps in the changes that a database trigger received, by trigger."
        case .httpRequests: "HTTP requests, by class of status."
        case .httpSeconds: "Time of an HTTP request."
        case .logins: "Logins, by provider."
        case .loginFailures: "Logins rejected, by provider."
        case .mails: "Mails to users, by result: sent, deferred, refused or dropped."
        case .adminRefused: "Requests to the admin port rejected for their token, by code."
        case .loginsLimited: "Logins and registrations rejected by a limit, by limit."
        case .spansExported: "Spans of traces that the collector accepted."
        case .spansDropped: "Spans of traces that were dropped because the queue was full or the collector rejected them."
        case .libraryMetricsRefused: "Handles of library metrics that are not shown because they exceed a bound or do not fit."
        }
    }
}
