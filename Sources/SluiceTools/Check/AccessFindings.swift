import SluiceCore
package import SluiceKafka

/// The judgement of the brokers' access lists for the gateway's account: may it read and write the app's topics?
package struct AccessFindings: Sendable {
    package var access: ClusterAccess
    /// The account's name in access lists; nil if it depends on a certificate or a ticket.
    package var principal: String?
    package var topics: [String]
    package var tool: KafkaTool

    /// The number of topics that a message names.
    private static let shownTopics = 5
    /// The operations that a gateway needs on each topic.
    private static let needed: [AccessLists.Operation] = [.read, .write]

    package init(_ access: ClusterAccess, of principal: String?, topics: [String], tool: KafkaTool) {
        self.access = access
        self.principal = principal
        self.topics = topics
        self.tool = tool
    }

    package var findings: [CheckFinding] {
        switch access {
        case .open: [note("The brokers have no authorizer: every account that connects may read and write every topic.")]
        case .unread(let error):
            [note("Whether the account may read and write the topics is not known. \(error.operatorText)", fix: error.fix ?? "")]
        case .lists(let lists) where lists.entries.isEmpty: [empty]
        case .lists(let lists):
            if let principal {
                judged(lists, principal)
            } else {
                [
                    note(
                        "The brokers have access lists, and take the account's name from a certificate or a ticket: whether it may read and write "
                            + "the topics is known when a gateway does so.")
                ]
            }
        }
    }

    private func note(_ message: String, fix: String = "") -> CheckFinding {
        CheckFinding(.note, .kafka, Self.subject, message, fix: fix)
    }

    private static let subject = "access lists"

    private var empty: CheckFinding {
        CheckFinding(
            .note, .kafka, Self.subject,
            "The brokers show no access list: there is none, or the account may not describe the cluster. Whether it may read and write the topics "
                + "is known when a gateway does so.",
            commands: ["\(tool.command("kafka-acls")) --add --allow-principal User:NAME --operation Describe --cluster"])
    }

    // MARK: Access lists

    /// What no entry allows on some topics.
    private struct Lack: Hashable {
        var operations: [AccessLists.Operation]
        /// `true` if the topics have entries, for others.
        var hasEntries: Bool
    }

    private func judged(_ lists: AccessLists, _ principal: String) -> [CheckFinding] {
        var denials: [AccessLists.Entry: [String]] = [:]
        var lacks: [Lack: [String]] = [:]
        for topic in topics {
            var missing: [Bool: [AccessLists.Operation]] = [:]
            for operation in Self.needed {
                switch lists.verdict(on: .topic(topic), operation, of: principal) {
                case .allowed: break
                case .denied(let entry): if denials[entry]?.last != topic { denials[entry, default: []].append(topic) }
                case .missing(let hasEntries): missing[hasEntries, default: []].append(operation)
                }
            }
            for (hasEntries, operations) in missing {
                lacks[Lack(operations: operations, hasEntries: hasEntries), default: []].append(topic)
            }
        }
        // The account has read the lists. If no entry lets it, its rights are not from entries alone.
        let isListed = lists.verdict(on: .cluster, .describe, of: principal) == .allowed
        let found = denials.map { finding($0, $1, principal) } + lacks.compactMap { finding($0, $1, isListed: isListed) }
        return found.sorted { $0.message < $1.message } + (isListed ? [] : [others])
    }

    private var others: CheckFinding {
        note(
            "The account may read the access lists, and no entry of them allows it. If it is one of super.users, it needs none. "
                + "If allow.everyone.if.no.acl.found is true, topics without an entry are open to it.")
    }

    private func finding(_ entry: AccessLists.Entry, _ topics: [String], _ principal: String) -> CheckFinding {
        let name = if case .topic(let name) = entry.resource { name } else { "*" }
        let account = entry.principal == principal ? "User:NAME" : "'\(entry.principal)'"
        return CheckFinding(
            .error, .kafka, Self.subject, "An access list denies the account \(entry.operation.rawValue) on \(Self.text(topics)).",
            commands: [
                "\(tool.command("kafka-acls")) --remove --deny-principal \(account) --operation \(entry.operation.rawValue) --topic '\(name)'"
                    + (entry.isPrefix ? " --resource-pattern-type prefixed" : "")
            ])
    }

    /// - Returns: nil if the lists say nothing about the topics, and not all about the account.
    private func finding(_ lack: Lack, _ topics: [String], isListed: Bool) -> CheckFinding? {
        guard isListed || lack.hasEntries else { return nil }
        let operations = lack.operations.map(\.rawValue)
        let reason =
            lack.hasEntries ? "" : " These topics have no entry at all: only allow.everyone.if.no.acl.found of the brokers opens them."
        let options = operations.map { "--operation \($0)" } + topics.map { "--topic '\($0)'" }
        return CheckFinding(
            isListed && lack.hasEntries ? .error : .warning, .kafka, Self.subject,
            "No access list allows the account \(operations.joined(separator: " and ")) on \(Self.text(topics)).\(reason)",
            commands: ["\(tool.command("kafka-acls")) --add --allow-principal User:NAME \(options.joined(separator: " "))"])
    }

    private static func text(_ topics: [String]) -> String {
        let names = topics.prefix(shownTopics).joined(separator: ", ")
        return topics.count == 1
            ? "the topic \(names)" : "\(topics.count) topics: \(names)" + (topics.count > shownTopics ? " and others" : "")
    }
}

/// The commands of Kafka's own tools. Their settings have other names than librdkafka's.
package struct KafkaTool: Hashable, Sendable {
    /// The bootstrap servers.
    package var servers: String
    /// `true` if the brokers are reached by TLS or SASL, so that the tools need a file with their settings.
    package var needsClientFile: Bool

    package init(servers: String, needsClientFile: Bool) {
        self.servers = servers
        self.needsClientFile = needsClientFile
    }

    /// Returns the beginning of a command.
    func command(_ name: String) -> String {
        "\(name) --bootstrap-server \(servers)" + (needsClientFile ? " --command-config client.properties" : "")
    }
}
