extension ErrorCode {
    /// The meaning and the fix of every code. The switch has no default, so the compiler requires an entry for a new code.
    var advice: (meaning: String, fix: String) {
        switch self {
        case .unknownMessage:
            (
                "The peer sent a message of a kind that this version does not know.",
                "Use the same release of SDK and gateway, or an older SDK."
            )
        case .badSyntax:
            (
                "The peer sent bytes that are not a message of the protocol.",
                "Check that the client speaks sluice.v1 and that no proxy rewrites frames."
            )
        case .limitsExceeded: ("A message is larger than the limit.", "Split the write into several transactions.")
        case .wrongProtocolVersion: ("Client and gateway share no protocol version.", "Upgrade the older of the two.")
        case .helloTimeout:
            (
                "The connection received no complete Hello in time.",
                "Send Hello at once after the upgrade. If the network is slow, the client retries."
            )
        case .tooManyConnections:
            (
                "One address has too many connections open.",
                "Close some, or raise --connections-per-address. Behind a reverse proxy, name the proxy with --trusted-proxy."
            )
        case .helloTooLarge:
            (
                "A client that has not authenticated sent a message larger than the limit.",
                "Send RefreshToken with the access token first; the SDK does so when its Hello is large."
            )
        case .badMessageOrder: ("A message arrived before the one that it depends on.", "Send Hello first, then subscriptions and uploads.")
        case .internalError:
            ("An internal operation of the gateway failed.", "Read the gateway's log at that time. The client retries.")
        case .tokenExpired: ("The access token has expired.", "Refresh the token. The SDK does so automatically.")
        case .badAuthentication: ("The access token does not belong to this app.", "Log in again against this app.")
        case .permissionDenied: ("The rules give this user no access.", "Check the rules of the app for this user.")
        case .badClientFile: ("The gateway does not know this client replica.", "Delete the local file. The SDK downloads the data again.")
        case .badChangeset: ("An upload contradicts the schema or itself.", "Check the model classes against the app's schema.")
        case .userDisabled: ("The user is disabled or deleted.", "Enable the user, or log in as another.")
        case .userMismatch: ("The client replica belongs to another user.", "Open one file per user. The SDK does so automatically.")
        case .invalidSchemaChange:
            (
                "The client's schema has a class or property that the server's schema lacks.",
                "Deploy the schema first, or run the gateway in development mode."
            )
        case .writeNotAllowed: ("An asymmetric object was rejected and skipped.", "Check the ingest rules for this type.")
        case .compensatingWrite:
            ("A write was not allowed and was undone.", "Check the reason. The values are in sluice.rejected_write.")
        case .slowClient: ("The client did not read its messages in time.", "Nothing: the client reconnects and bootstraps.")
        case .resync: ("The session must start again with a bootstrap.", "Nothing: the client reconnects.")
        case .sessionDisabled:
            (
                "Sync of the app is disabled. No data is lost, and clients retry.",
                "Set \"state\" in sync/config.json to \"enabled\" and restart the gateway."
            )
        case .shuttingDown: ("The gateway is stopping.", "Nothing: the client reconnects, possibly to another gateway.")
        case .unknownType: ("An object type is not in the schema.", "Add the type to the app's schema, or correct its name.")
        case .unknownProperty:
            ("A property is not in the schema of its type.", "Add the property to the app's schema, or correct its name.")
        case .wrongValueType: ("A value does not have its property's type.", "Send a value of the schema's type.")
        case .invalidName:
            (
                "The server cannot store the name of a class or property.",
                "Use letters, digits and '_', beginning with a letter or '_', in normal form C: 57 bytes for a class, 63 for a property."
            )
        case .querySyntax: ("The query is not well formed.", "Correct it at the place shown.")
        case .queryUnknownProperty: ("The query names a property or class that does not exist.", "Correct the name.")
        case .queryTypeMismatch: ("The query compares values that cannot be compared.", "Compare with a value of the property's type.")
        case .queryArgument: ("An argument of the query is missing or does not fit.", "Pass one argument for each placeholder.")
        case .queryShape: ("A shape of GEOWITHIN is not valid.", "Close every loop, keep holes inside, and give longitude before latitude.")
        case .queryNotQueryable:
            ("A subscription uses a field that is not queryable.", "Add it to queryable_fields_names, or filter locally.")
        case .queryUnsupported:
            ("A query uses a construct that is not supported at this place.", "Rewrite the query, or filter the results in code.")
        case .queryIndexedFieldMissing:
            ("A subscription does not pin the indexed queryable field.", "Add `field == value AND` or `field IN {…} AND` in front.")
        case .queryAsymmetric: ("A subscription names an asymmetric class.", "Asymmetric objects can only be written.")
        case .queryTooLarge:
            ("A subscription, or the whole set, is over a limit.", "Shorten the lists in it, or subscribe to more and filter locally.")
        case .querySubscribedTypeUnknown:
            ("A subscription names a type that the server does not have.", "Deploy the type first, or correct its name.")
        case .queryAggregate:
            ("A subscription uses `@max`, `@min`, `@sum` or `@avg`.", "Subscribe without it and compute over the local results.")
        case .queryCount:
            (
                "A subscription counts elements of a property that is not a list of scalars.",
                "Only the `@count` of a queryable list can be compared; filter the rest locally."
            )
        case .querySort:
            (
                "A subscription has a SORT in its text, or a limit with a sort key that has no order.",
                "Give the order beside the query (SyncSubscriptionOptions), by single values, or sort the local results."
            )
        case .queryDistinct:
            (
                "A subscription has a DISTINCT in its text, without a limit, or by a property without an order.",
                "Give it beside the query with a limit (SyncSubscriptionOptions), by single values, or apply it to the local results."
            )
        case .queryLimit:
            (
                "A subscription has a LIMIT in its text, or its limit or included links exceed the bound.",
                "Give the limit beside the query (SyncSubscriptionOptions), up to 10,000, or limit the local results."
            )
        case .queryTwoLists: ("A subscription compares two lists.", "Compare the list with one constant at a time, joined by OR.")
        case .queryLinkPath:
            (
                "A subscription follows a link or looks into an embedded object.",
                "Copy the value into a field of the class itself, or filter locally."
            )
        case .queryBacklinks: ("A subscription uses `@links`.", "Subscribe to the linking class by its own fields, and filter locally.")
        case .querySubquery: ("A subscription has a SUBQUERY.", "Subscribe to more and apply it locally.")
        case .queryGeospatial:
            (
                "A subscription has a GEOWITHIN on a property that is not one point.",
                "Give the class an embedded object with the properties type and coordinates, or filter locally."
            )
        case .queryFullText: ("A subscription has a TEXT search.", "Subscribe to more and search locally.")
        case .queryArithmetic:
            ("A subscription uses arithmetic.", "Compare the field with the result of the calculation, or filter locally.")
        case .queryTwoFields: ("A subscription compares two fields.", "Compare each field with constants, and filter the rest locally.")
        case .queryValueType: ("A subscription uses `@type`.", "Subscribe to more and filter by type locally.")
        case .queryElement:
            (
                "A subscription compares one element of a list, dictionary or mixed value, by index, key, `@keys` or `@values`.",
                "Compare the whole list's elements, or filter locally."
            )
        case .queryLinkValue: ("A subscription compares a link.", "Store the target's key in a field of its own, or filter locally.")
        case .queryPathArgument: ("A subscription takes a path from an argument.", "Write the field's name into the query.")
        case .queryEmbedded:
            ("A subscription names an embedded class, which has no objects of its own.", "Subscribe to the class that contains it.")
        case .badRequest: ("The request is not valid for this path.", "See the path's description.")
        case .invalidPassword:
            ("E-mail and password do not match a user.", "Check both; the e-mail's case does not matter, the password's does.")
        case .crossSiteRequest:
            (
                "A page of another site sent the request to the gateway, or could have sent it.",
                "Use an address, localhost or a name without a dot, and no header Origin of another site."
            )
        case .userNotFound: ("The user does not exist.", "Register first.")
        case .requestTimeout:
            (
                "The body of a request arrived too slowly, or took too long.",
                "Send the rest in another request; docs/limits.md has the rate and the time."
            )
        case .nameInUse: ("The name is already in use.", "Log in, or choose another.")
        case .bodyTooLarge: ("The request's body is over the limit.", "Send several smaller requests.")
        case .unsupportedEncoding: ("The encoding of the body is not supported.", "Send gzip, zstd or no Content-Encoding.")
        case .badCompression:
            ("The body's compressed stream is damaged or cut.", "Check Content-Encoding, and send the whole stream again.")
        case .badJSON: ("The body is not valid JSON for this path.", "Correct it at the place named.")
        case .tooManyRequests: ("Too many requests at once.", "Try again after the time in Retry-After.")
        case .providerDisabled: ("This login provider is not enabled for the app.", "Enable it in auth/providers.json.")
        case .invalidSession: ("The login has ended, or the refresh token is none of it.", "Log in again.")
        case .idempotencyKeyInUse:
            (
                "The Idempotency-Key belongs to another request, or to one that is still running.",
                "Use one key per body. If it is the same request, retry after the time in Retry-After."
            )
        case .apiKeyNotFound: ("The API key does not exist.", "List the keys, or create one.")
        case .adminUnauthorized:
            (
                "The admin port's request carries no token, or one that is not valid.",
                "Send Authorization: Bearer and an admin token; pass --admin-token-file to the command line."
            )
        case .adminForbidden:
            ("A token with the role read requests a change at the admin port.", "Use a token with the role change.")
        case .invalidEmail:
            (
                "The e-mail address is not valid for a user.",
                "Use 1 to 320 bytes without spaces, control characters or invisible characters."
            )
        case .userNotConfirmed:
            (
                "The user registered, and the e-mail address is not confirmed yet.",
                "Open the link in the confirmation mail, or request another with resendConfirmationEmail."
            )
        case .userAlreadyConfirmed: ("The user of this e-mail address is confirmed.", "Log in.")
        case .loginTokenRejected:
            (
                "A login token of another issuer is not valid for this app.",
                "Get a new token from the issuer. The gateway's log has the reason."
            )
        case .identityInUse:
            ("An identity belongs to another user.", "Log in with these credentials, or delete the other user first.")
        case .functionNotFound: ("The app has no function of this name.", "Correct the name, or add it to functions/config.json.")
        case .functionRefused: ("The user may not call the function.", "Check can_evaluate and private of the function.")
        case .functionFailed:
            ("A function of the app reported an error.", "Read its message. The service or plugin behind it has the details.")
        case .functionUnavailable:
            (
                "The service or plugin behind a function does not answer.",
                "Start it, or correct its URL in sluice.json. The gateway's log has the reason."
            )
        case .functionTimeout: ("A function did not answer in time.", "Make it faster, or raise its timeout_ms in sluice.json.")
        case .outboundFailed:
            ("A request of the gateway to another service failed.", "Check the URL and the service. The gateway's log has the reason.")
        case .outboundTimeout: ("Another service did not answer in time.", "Check the service and the network. The gateway retries.")
        case .outboundAddressRefused:
            (
                "Another service has a loopback, private or link-local address, or its URL is not allowed.",
                "Correct the URL, or set \"allow_private_addresses\" to true beside it in sluice.json."
            )
        case .outboundTooLarge:
            ("The answer of another service is too large.", "Let the service send less, or raise its answer_bytes in sluice.json.")
        case .mailFailed:
            ("A mail could not be sent.", "Check \"mail\" in sluice.json and the mail server. The gateway's log has the reason.")
        case .pluginMissing: ("A plugin's file is missing or cannot be loaded.", "Check the path and its dependencies with ldd.")
        case .pluginABIMismatch:
            ("A plugin was built for another version of sluice_plugin.h.", "Upgrade the side that the message names.")
        case .pluginCrashed: ("A plugin ended its host process.", "Read the plugin's last output in the log. The host has been replaced.")
        case .pluginTimeout: ("A plugin did not answer in time.", "Make it faster or raise its deadline. The host has been replaced.")
        case .pluginRefused: ("A plugin denied the request, or rejected its configuration.", "Read the reason that it gave.")
        case .pluginBadAnswer: ("A plugin's answer cannot be used.", "Correct the plugin at the place named.")
        case .pluginUnavailable:
            (
                "A plugin cannot be called: its host is not running, or its queue is full.",
                "The gateway restarts the host and denies calls until then. If the queue is full, make the plugin faster."
            )
        case .pluginUnlisted: ("A plugin's file is not in the app directory's plugins.json.", "List it with `sluice plugin add`.")
        case .pluginAltered:
            (
                "A plugin's file is not the listed one: its SHA-256 or its signature does not match.",
                "If the change is intended, list the file again with `sluice plugin add`. If not, find out how it changed."
            )
        case .pluginUnfit:
            ("A plugin does not conform to the interface.", "Run `sluice plugin check` on its file, and correct what it reports.")
        case .pluginFailed: ("A plugin could not decide, so the call was denied.", "Read the reason that it gave.")
        case .postgresUnreachable: ("PostgreSQL does not answer.", "Check that it runs and that the connection string is correct.")
        case .postgresStatement:
            ("PostgreSQL rejected a statement.", "Search the gateway's log for the code. It has PostgreSQL's own message.")
        case .postgresSetting: ("A setting of PostgreSQL is not suitable.", "Set it as named and restart PostgreSQL.")
        case .slotLost:
            (
                "The replication slot has been lost.",
                "Raise max_slot_wal_keep_size and drop the slot. A gateway creates a new one, and all sessions bootstrap."
            )
        case .slotBusy: ("Another gateway holds the replication slot.", "Nothing: this gateway takes over when the other stops.")
        case .tableUnfit: ("A table does not fit its schema.", "Change the table or the schema as named.")
        case .logUnreachable: ("The Kafka brokers do not answer.", "Check the address and the brokers. The gateway retries.")
        case .logTopic: ("A topic is missing or has the wrong shape.", "Create it as named, or let the gateway create it.")
        case .logGap: ("The log lost records.", "Nothing: the affected sessions bootstrap.")
        case .logDelivery:
            ("The brokers did not store a record.", "Read the broker's error. No data is lost: the gateway sends the record again.")
        case .logFull: ("The queue of records to the brokers is full.", "Send again after a pause; check that the brokers keep pace.")
        case .logRecordTooLarge:
            (
                "A record is larger than the brokers accept.",
                "Raise message.max.bytes of the brokers, or the topic's max.message.bytes, or write smaller objects."
            )
        case .logReplicas:
            (
                "A topic has fewer in-sync replicas than min.insync.replicas requires.",
                "Start the brokers that are down, or lower the topic's min.insync.replicas below its replication factor; nothing is lost."
            )
        case .logNotAuthorized:
            ("The brokers' access lists deny an operation that the gateway needs.", "Allow the operation that the message names.")
        case .ingestRejected: ("The ingest rules rejected an object.", "See the reason; the object is in sluice.ingest_rejected.")
        case .ingestMalformed:
            ("An object to ingest is not readable or does not fit its type.", "Correct the object; it is in sluice.ingest_rejected.")
        case .ingestUnknownType: ("No asymmetric class has this name.", "Correct the name, or make the class asymmetric.")
        case .ingestTooLarge: ("An object to ingest is over the limit.", "Split it, or store large data elsewhere and send a reference.")
        case .configUnknownKey: ("A configuration file has an unknown key.", "Correct its spelling or remove it.")
        case .configInvalid: ("A configuration value cannot be used.", "Correct it as named.")
        case .configMissing: ("A required setting is missing.", "Add it as named.")
        case .portInUse: ("The port is in use.", "Choose another with --port, or 0 for any.")
        case .logAhead:
            (
                "The log has transactions that the database lacks: the database was restored from a backup, or an app shares the topics.",
                "Delete the topics that docs/operations.md names, or give the app another app_id. Without Kafka, restart the gateway."
            )
        case .adminTokenMissing:
            (
                "The admin port listens on an address other than the loopback, and no token protects it.",
                "Run sluice admin-token and pass --admin-token-file, or set SLUICE_ADMIN_TOKEN_FILE or SLUICE_ADMIN_TOKEN."
            )
        case .columnRefusesInserts:
            (
                "A column without a property rejects the objects that devices create.",
                "Run one of the statements that `sluice schema diff` names, or give the class a property for the column."
            )
        case .foreignKeyCircle:
            (
                "A foreign key that is not deferrable leads back to its own class.",
                "Run the statement that `sluice schema diff` prints. It makes the foreign key DEFERRABLE."
            )
        case .grantMissing:
            (
                "The gateway's role lacks rights in its database.",
                "Run the named statements as the owner of the tables. `sluice schema grants` prints them."
            )
        case .breakingSchemaChange:
            (
                "The app directory's schema removes parts that apps in use need.",
                "Keep the named parts. Once no app needs them, accept the change with `sluice schema apply --accept-breaking`."
            )
        case .replicaCorrupt:
            (
                "The local file is damaged.",
                "Restore it from a backup, or delete it. A synced Realm is downloaded again without unsent writes, a local one is empty."
            )
        case .replicaVersion: ("The local file was written by a newer release.", "Upgrade the app.")
        case .noSubscriptionForWrite: ("No subscription covers the class of the write.", "Subscribe to the class first.")
        case .connectionFailed:
            ("The gateway cannot be reached.", "Nothing: the client retries. Check the address if it never succeeds.")
        case .deviceFull:
            (
                "The disk of the local file or a quota is full.",
                "Free space. Write again what was not committed; sync resumes automatically."
            )
        case .writeTooLarge:
            (
                "A write transaction is larger than one upload.",
                "Write the objects in several transactions. The large transaction is undone, and later writes are uploaded."
            )
        case .timeout: ("An operation did not finish in time.", "Retry. The message names the operation.")
        case .tlsHandshakeFailed:
            (
                "The TLS handshake between the client and the gateway, or a proxy in front of it, failed.",
                "Check that the device trusts the certificate, that it is for the host of the address and has not expired, and the device's clock."
            )
        case .serverKeyMismatch:
            (
                "The server has a trusted certificate with a key that the app does not expect, or no TLS.",
                "Check the network, as another server may pose as yours. If the key is new, release the app with its pin."
            )
        }
    }
}
