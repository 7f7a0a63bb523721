import SluiceCore
import SluiceKafka
import SluiceTools
import Testing

/// The judgement of access lists by `sluice check`: lists in, findings out.
struct AccessFindingsTests {
    private static let topics = ["app.progress", "app.Item"]

    private static func findings(_ access: ClusterAccess, of principal: String? = "User:kim") -> [CheckFinding] {
        AccessFindings(access, of: principal, topics: topics, tool: KafkaTool(servers: "k:9092", needsClientFile: true)).findings
    }

    private static let cluster = AccessLists.Entry(.cluster, principal: "User:kim", operation: .describe)

    @Test func `an account that may read and write has no finding`() {
        let all = AccessLists([
            Self.cluster, .init(.topic("app."), isPrefix: true, principal: "User:kim", operation: .read),
            .init(.topic("*"), principal: "User:*", operation: .write),
        ])
        #expect(Self.findings(.lists(all)) == [])
    }

    @Test func `what no entry allows is named with the command that allows it`() {
        let lists = AccessLists([
            Self.cluster, .init(.topic("app.Item"), principal: "User:kim", operation: .read),
            .init(.topic("app.progress"), principal: "User:other", operation: .all),
        ])
        let found = Self.findings(.lists(lists))
        #expect(
            found.map(\.message) == [
                "No access list allows the account Read and Write on the topic app.progress.",
                "No access list allows the account Write on the topic app.Item.",
            ])
        #expect(found.allSatisfy { $0.severity == .error && $0.area == .kafka })
        let start = "kafka-acls --bootstrap-server k:9092 --command-config client.properties --add --allow-principal User:NAME"
        #expect(
            found.flatMap(\.commands) == [
                "\(start) --operation Read --operation Write --topic 'app.progress'", "\(start) --operation Write --topic 'app.Item'",
            ])
    }

    @Test func `topics without an entry may be open, and a denial is an error with the entry`() {
        #expect(Self.findings(.lists(AccessLists([Self.cluster]))).map(\.severity) == [.warning])
        let denied = AccessLists([
            Self.cluster, .init(.topic("*"), principal: "User:kim", operation: .all),
            .init(.topic("app."), isPrefix: true, principal: "User:*", operation: .write, isAllowed: false),
        ])
        let found = Self.findings(.lists(denied))
        #expect(found.map(\.message) == ["An access list denies the account Write on 2 topics: app.progress, app.Item."])
        #expect(
            found.first?.commands == [
                "kafka-acls --bootstrap-server k:9092 --command-config client.properties --remove --deny-principal 'User:*' "
                    + "--operation Write --topic 'app.' --resource-pattern-type prefixed"
            ])
        // The account's name is a value of the Kafka settings.
        let own = AccessLists([Self.cluster, .init(.topic("*"), principal: "User:kim", operation: .all, isAllowed: false)])
        #expect(!"\(Self.findings(.lists(own)))".contains("kim"))
    }

    @Test func `an account whose rights are from elsewhere has a note, and lists of topics without it a warning`() {
        let elsewhere = AccessLists([.init(.topic("other"), principal: "User:other", operation: .all)])
        #expect(Self.findings(.lists(elsewhere)).map(\.severity) == [.note])
        let lists = AccessLists([.init(.topic("app.Item"), principal: "User:other", operation: .all)])
        let found = Self.findings(.lists(lists))
        #expect(found.map(\.severity) == [.warning, .note] && found[0].message.hasSuffix("on the topic app.Item."), "\(found)")
    }

    @Test func `no entry is a note with the command that lets the account read entries`() {
        let found = Self.findings(.lists(AccessLists([])))
        #expect(found.map(\.severity) == [.note])
        #expect(found.first?.commands.first?.hasSuffix("--allow-principal User:NAME --operation Describe --cluster") == true, "\(found)")
    }

    @Test func `lists that are unread, absent or of a certificate's name are notes`() {
        let error = SluiceError(.logNotAuthorized, "The Kafka brokers deny the operation Describe on the cluster.", fix: "Allow it.")
        let found = [Self.findings(.open), Self.findings(.unread(error)), Self.findings(.lists(AccessLists([Self.cluster])), of: nil)]
        #expect(found.map { $0.map(\.severity) } == [[.note], [.note], [.note]])
        #expect(found[1][0].message.hasSuffix("the operation Describe on the cluster.") && found[1][0].fix == "Allow it.")
    }
}
