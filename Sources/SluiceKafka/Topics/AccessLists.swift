import CRdKafka
package import SluiceCore

/// The access lists of topics and of the cluster, as the brokers' authorizer has them.
package struct AccessLists: Hashable, Sendable {
    /// An operation, by its name in commands.
    package enum Operation: String, Hashable, Sendable {
        case all = "All"
        case read = "Read"
        case write = "Write"
        case delete = "Delete"
        case alter = "Alter"
        case describe = "Describe"
        case other = "(other)"

        /// `true` if an entry that allows this operation allows the other one, too.
        func includes(_ operation: Operation) -> Bool {
            self == operation || self == .all || operation == .describe && [.read, .write, .delete, .alter].contains(self)
        }
    }

    package enum Resource: Hashable, Sendable {
        case cluster
        case topic(String)
    }

    package struct Entry: Hashable, Sendable {
        /// The resource. A topic with the name `*` means every topic.
        package var resource: Resource
        /// `true` if the name is the beginning of the names that are meant.
        package var isPrefix: Bool
        package var principal: String
        /// The address of a client; `*` for every one.
        package var host: String
        package var operation: Operation
        /// `false` for an entry that denies.
        package var isAllowed: Bool

        package init(
            _ resource: Resource, isPrefix: Bool = false, principal: String, host: String = "*", operation: Operation,
            isAllowed: Bool = true
        ) {
            self.resource = resource
            self.isPrefix = isPrefix
            self.principal = principal
            self.host = host
            self.operation = operation
            self.isAllowed = isAllowed
        }

        func covers(_ other: Resource) -> Bool {
            guard case .topic(let name) = resource, case .topic(let topic) = other else { return resource == other }
            return isPrefix ? topic.hasPrefix(name) : name == topic || name == "*"
        }
    }

    /// The decision of the brokers on an operation.
    package enum Verdict: Hashable, Sendable {
        case allowed
        /// The entry denies it.
        case denied(Entry)
        /// No entry allows it. Without any entry for the resource, a setting of the brokers decides: `allow.everyone.if.no.acl.found`.
        case missing(hasEntries: Bool)
    }

    package var entries: [Entry]

    package init(_ entries: [Entry]) { self.entries = entries }

    /// Returns the decision for an account that is no super user.
    ///
    /// The client's address is unknown: an entry for one address counts if it allows, and does not if it denies.
    package func verdict(on resource: Resource, _ operation: Operation, of principal: String) -> Verdict {
        let found = entries.filter { $0.covers(resource) }
        let own = found.filter { $0.principal == principal || $0.principal == "User:*" }
        if let denial = own.first(where: { !$0.isAllowed && $0.host == "*" && [operation, .all].contains($0.operation) }) {
            return .denied(denial)
        }
        return own.contains { $0.isAllowed && $0.operation.includes(operation) } ? .allowed : .missing(hasEntries: !found.isEmpty)
    }
}

/// The answer of the brokers to a request for their access lists.
package enum ClusterAccess: Hashable, Sendable {
    /// The entries. They are empty as well if the brokers refuse the request: librdkafka drops the error of an answer without entries.
    case lists(AccessLists)
    /// The brokers have no authorizer: every account may do everything.
    case open
    case unread(SluiceError)
}

extension KafkaAdmin {
    /// Reads the access lists of topics and of the cluster, in two requests. Changes nothing.
    ///
    /// - Parameter facts: The facts of the cluster. Without an authorizer, nothing is asked.
    package func access(_ facts: ClusterFacts) async -> ClusterAccess {
        if facts.defaults["authorizer.class.name"] == "" { return .open }
        do {
            return .lists(
                AccessLists(
                    try await ask { client, configuration in
                        try [RD_KAFKA_RESOURCE_BROKER, RD_KAFKA_RESOURCE_TOPIC].flatMap {
                            try AccessRequests.entries(of: $0, client: client, configuration: configuration)
                        }
                    }))
        } catch {
            return .unread(SluiceError(of: error) ?? SluiceError(.logUnreachable, "\(error)"))
        }
    }
}

/// Requests for access lists that block until a broker answers. Call them on a dedicated thread.
private enum AccessRequests {
    /// Returns the entries of all resources of a kind.
    ///
    /// - Throws: `logNotAuthorized` without the right to describe the cluster, `logTopic` for another error, `logUnreachable`.
    static func entries(
        of kind: rd_kafka_ResourceType_t, client: KafkaPointer, configuration: KafkaConfiguration
    ) throws -> [AccessLists.Entry] {
        var filter: OpaquePointer?
        let refusal = unsafe withErrorText {
            unsafe filter = rd_kafka_AclBindingFilter_new(
                kind, nil, RD_KAFKA_RESOURCE_PATTERN_ANY, nil, nil, RD_KAFKA_ACL_OPERATION_ANY, RD_KAFKA_ACL_PERMISSION_TYPE_ANY, $0, $1)
            return unsafe filter != nil
        }
        guard let filter = unsafe filter else {
            throw SluiceError(.logTopic, "The access lists cannot be asked for.", cause: .text(refusal ?? "out of memory"))
        }
        defer { unsafe rd_kafka_AclBinding_destroy(filter) }
        return try unsafe TopicRequests.send(client, configuration, asking: "about access lists", as: .describe) { options, queue in
            unsafe rd_kafka_DescribeAcls(client.raw, filter, options, queue)
        } read: { event in
            var count = 0
            let entries = unsafe rd_kafka_DescribeAcls_result_acls(rd_kafka_event_DescribeAcls_result(event), &count)
            return (0..<count).compactMap { index in unsafe entries?[index].flatMap { unsafe AccessLists.Entry($0) } }
        }
    }
}

extension AccessLists.Entry {
    /// Reads an entry; nil for one of another kind.
    fileprivate init?(_ binding: OpaquePointer) {
        func text(_ pointer: UnsafePointer<CChar>?) -> String { unsafe pointer.map { unsafe String(cString: $0) } ?? "" }
        let permission = unsafe rd_kafka_AclBinding_permission_type(binding)
        guard permission == RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW || permission == RD_KAFKA_ACL_PERMISSION_TYPE_DENY else { return nil }
        let name = unsafe text(rd_kafka_AclBinding_name(binding))
        self.init(
            unsafe rd_kafka_AclBinding_restype(binding) == RD_KAFKA_RESOURCE_TOPIC ? .topic(name) : .cluster,
            isPrefix: unsafe rd_kafka_AclBinding_resource_pattern_type(binding) == RD_KAFKA_RESOURCE_PATTERN_PREFIXED,
            principal: unsafe text(rd_kafka_AclBinding_principal(binding)), host: unsafe text(rd_kafka_AclBinding_host(binding)),
            operation: .init(unsafe rd_kafka_AclBinding_operation(binding)), isAllowed: permission == RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW)
    }
}

extension AccessLists.Operation {
    fileprivate init(_ operation: rd_kafka_AclOperation_t) {
        switch operation {
        case RD_KAFKA_ACL_OPERATION_ALL: self = .all
        case RD_KAFKA_ACL_OPERATION_READ: self = .read
        case RD_KAFKA_ACL_OPERATION_WRITE: self = .write
        case RD_KAFKA_ACL_OPERATION_DELETE: self = .delete
        case RD_KAFKA_ACL_OPERATION_ALTER: self = .alter
        case RD_KAFKA_ACL_OPERATION_DESCRIBE: self = .describe
        default: self = .other
        }
    }
}
