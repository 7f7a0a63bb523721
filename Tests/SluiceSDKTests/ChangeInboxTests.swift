import SluiceReplica
import Testing

@testable import SluiceSDK

@Suite struct `News of commits` {
    private static func versions(_ inbox: ChangeInbox, at version: UInt64) -> [UInt64] {
        guard case .entries(let entries) = inbox.take(at: version, isLast: true) else { return [] }
        return entries.map(\.change.version)
    }

    @Test func `become one, but where an observer begins between them`() {
        let inbox = ChangeInbox()
        func commit(_ version: UInt64) { _ = inbox.put(ReplicaChange(version: version, types: [:])) }
        for version: UInt64 in 1...3 { commit(version) }
        #expect(Self.versions(inbox, at: 3) == [3])
        // The Realm shows 5, then 6 comes, and only then the observer says that it begins at 5: 4 and 5 are none of its changes.
        commit(4)
        inbox.hold()
        for version: UInt64 in 5...6 { commit(version) }
        inbox.separate(at: 5)
        for version: UInt64 in 7...8 { commit(version) }
        #expect(Self.versions(inbox, at: 8) == [4, 5, 8])
        for version: UInt64 in 9...10 { commit(version) }
        #expect(Self.versions(inbox, at: 10) == [10])
    }

    @Test func `become one again where an observer did not begin after all`() {
        let inbox = ChangeInbox()
        inbox.hold()
        for version: UInt64 in 1...2 { _ = inbox.put(ReplicaChange(version: version, types: [:])) }
        #expect(Self.versions(inbox, at: 2) == [1, 2])
        for version: UInt64 in 3...4 { _ = inbox.put(ReplicaChange(version: version, types: [:])) }
        #expect(Self.versions(inbox, at: 4) == [4])
    }
}
