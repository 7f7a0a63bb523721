import Foundation
import RealmSwift

class Team: Object {
    @Persisted(primaryKey: true) var _id: String
    @Persisted var name: String
}

class TeamTask: Object {
    @Persisted(primaryKey: true) var _id: UUID
    @Persisted var team: Team?
    @Persisted var title: String
    @Persisted var done: Bool
}
