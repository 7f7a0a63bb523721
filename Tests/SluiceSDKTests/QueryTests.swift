import Foundation
import SluiceSDK
import Testing

@Suite struct QueryTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// What a query is sent as.
    private func text<T: Object>(_ type: T.Type, _ query: (Query<T>) -> Query<Bool>) -> String {
        _subscriptionText(QuerySubscription<T>(query: query))
    }

    @Test func `queries are written in the query language`() {
        #expect(text(Task.self) { $0.progressMinutes >= 60 } == "progressMinutes >= 60")
        #expect(text(Task.self) { $0.completed == true && $0.progressMinutes > 120 } == "completed == true and progressMinutes > 120")
        #expect(text(Task.self) { $0.assignee == "John Doe" } == #"assignee == "John Doe""#)
        #expect(text(Task.self) { $0.assignee == nil } == "assignee == NULL")
        #expect(text(Task.self) { !$0.completed } == "completed == false")
        #expect(text(Task.self) { $0.completed || $0.progressMinutes < 3 } == "completed == true or progressMinutes < 3")
        #expect(
            text(Task.self) { ($0.completed || $0.progressMinutes < 3) && $0.taskName != "x" }
                == #"(completed == true or progressMinutes < 3) and taskName != "x""#)
        #expect(text(Task.self) { !($0.progressMinutes == 1) } == "!(progressMinutes == 1)")
        #expect(text(Task.self) { $0.progressMinutes.in([1, 2]) } == "progressMinutes IN {1, 2}")
        #expect(text(Task.self) { $0.progressMinutes.contains(1...3) } == "progressMinutes BETWEEN {1, 3}")
        #expect(text(Task.self) { $0.progressMinutes.contains(1..<3) } == "progressMinutes >= 1 and progressMinutes < 3")
        #expect(text(Task.self) { $0.taskName.contains("a", options: .caseInsensitive) } == #"taskName CONTAINS[c] "a""#)
        #expect(text(Task.self) { $0.taskName.starts(with: "a") } == #"taskName BEGINSWITH "a""#)
        #expect(text(Task.self) { $0.taskName.ends(with: "a") } == #"taskName ENDSWITH "a""#)
        #expect(text(Task.self) { $0.taskName.like("a*") } == #"taskName LIKE "a*""#)
        #expect(text(Team.self) { $0.members.contains("Bob Smith") } == #""Bob Smith" IN members"#)
        #expect(text(Team.self) { $0.members.count > 2 } == "members.@count > 2")
        #expect(text(Team.self) { $0._id == ObjectId("0123456789abcdef01234567") } == "_id == oid(0123456789abcdef01234567)")
        #expect(text(Task.self) { $0.dueDate > Date(timeIntervalSince1970: 5) } == "dueDate > T5:0")
        #expect(text(Task.self) { $0.taskName == "say \"x\"" } == #"taskName == B64"c2F5ICJ4Ig==""#)
    }

    @Test func `predicates and type-safe queries have one text`() {
        let typed = QuerySubscription<Task> { $0.progressMinutes > 15 && $0.assignee == "Jo" }
        let format = QuerySubscription<Task>(where: "progressMinutes > %d AND %K == %@", 15, "assignee", "Jo")
        #expect(_subscriptionText(typed) == _subscriptionText(format))
        #expect(_subscriptionText(QuerySubscription<Task>(where: "progressMinutes > $0", 3)) == "progressMinutes > 3")
        #expect(_subscriptionText(QuerySubscription<Task>(name: "all")) == "TRUEPREDICATE")
    }

    @Test func `results follow filters, order and writes`() throws {
        let realm = try Realm(configuration: folder.local)
        let long = realm.objects(Task.self).where { $0.progressMinutes >= 60 }.sorted(byKeyPath: "progressMinutes", ascending: false)
        #expect(long.isEmpty && long.first == nil)
        try realm.write {
            for minutes in [30, 90, 60] { _ = realm.create(Task.self, value: ["progressMinutes": minutes, "taskName": "t\(minutes)"]) }
        }
        #expect(long.map(\.progressMinutes) == [90, 60])
        #expect(long.first?.taskName == "t90" && long.last?.taskName == "t60" && long[1].taskName == "t60")
        #expect(realm.objects(Task.self).filter("taskName BEGINSWITH %@ AND progressMinutes < 50", "t").count == 1)
        #expect(long.where { $0.taskName == "t60" }.count == 1)
        #expect(realm.objects(Task.self).sorted(by: \.progressMinutes).map(\.progressMinutes) == [30, 60, 90])
        try realm.write { for task in long { task.progressMinutes = 0 } }
        #expect(long.count == 0)
        try realm.write { realm.delete(realm.objects(Task.self)) }
        #expect(realm.isEmpty)
    }

    class Worded: Object {
        @Persisted(primaryKey: true) var _id: Int
        @Persisted var any: Int
        @Persisted var all: Int
        @Persisted var `in`: Int
        @Persisted var none: Int
        @Persisted var not: Int
        @Persisted var text: String
        @Persisted var sort: Int
        @Persisted var size: List<Int>
        @Persisted var YES: Bool
        @Persisted var or: Worded?
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }

    @Test func `a property named like a word of the language can be asked for`() throws {
        let realm = try Realm(configuration: folder.configuration([Worded.self]))
        try realm.write {
            for number in 1...3 {
                let worded = realm.create(Worded.self, value: ["_id": number, "any": number, "all": number, "in": number, "none": number])
                (worded.not, worded.text, worded.sort, worded.YES) = (number, "t\(number)", number, number == 2)
                worded.size.append(number)
                worded.or = worded
            }
        }
        let all = realm.objects(Worded.self)
        let queries: [(String, Results<Worded>)] = [
            ("any", all.where { $0.any == 2 }), ("all", all.where { $0.all > 1 && $0.all < 3 }), ("in", all.where { $0.in.in([2, 7]) }),
            ("none", all.where { !($0.none == 1 || $0.none == 3) }), ("not", all.where { $0.not.contains(2...2) }),
            ("text", all.where { $0.text.starts(with: "t2") }), ("sort", all.where { $0.sort == 2 }),
            ("size", all.where { $0.size.contains(2) }), ("YES", all.where { $0.YES }), ("or", all.where { $0.or.any == 2 }),
            ("aggregate", all.where { $0.size.sum == 2 && $0.size.count == 1 }),
        ]
        for (name, results) in queries { #expect(results.map(\._id) == [2], "\(name)") }
        #expect(realm.objects(Worded.self).sorted(byKeyPath: "any").first?.any == 1)
        #expect(text(Worded.self) { $0.text == "a" && $0.any == 1 } == #"text == "a" and `any` == 1"#)
        // By hand a backquote quotes, too.
        #expect(all.filter("`any` == %@ AND `or`.`in` == 2", 2).count == 1)
        #expect(all.filter("%K == %@ AND %K == %@", "or.in", 2, "YES", true).count == 1)
    }

    @Test func `a list of scalars can be searched`() throws {
        let realm = try Realm(configuration: folder.local)
        try realm.write {
            _ = realm.create(Team.self, value: ["teamName": "a", "members": ["Bob Smith", "Eve"]])
            _ = realm.create(Team.self, value: ["teamName": "b", "members": ["Eve"]])
        }
        #expect(realm.objects(Team.self).where { $0.members.contains("Bob Smith") }.map(\.teamName) == ["a"])
        #expect(realm.objects(Team.self).where { $0.members.count == 1 }.map(\.teamName) == ["b"])
    }
}
