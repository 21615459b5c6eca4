-- postgresql-simple
{-# LANGUAGE OverloadedStrings #-}
module Main (main) where

import Control.Exception (try)
import Control.Monad (forM_)
import Data.ByteString (ByteString)
import Data.Int (Int64)
import Data.List (sort)
import Data.Text (toUpper, unpack)
import Data.Time (addUTCTime, getCurrentTime)
import Database.PostgreSQL.Simple.Types (PGArray (..))
import System.Environment (getEnv)
import System.Process (readProcess)

-- The type for doc/clients.md: from here
import Data.Text (Text)
import Data.Text.Encoding (decodeUtf8)
import Database.PostgreSQL.Simple
import Database.PostgreSQL.Simple.FromField (FromField (..), returnError, typename)
import Database.PostgreSQL.Simple.ToField (ToField (..))

newtype Scru64 = Scru64 Text deriving (Eq, Ord, Show)

instance FromField Scru64 where
  fromField f value = typename f >>= \t -> case value of
    Just digits | t == "scru64" -> pure (Scru64 (decodeUtf8 digits))
    _ -> returnError (maybe UnexpectedNull (const Incompatible) value) f ""

instance ToField Scru64 where
  toField (Scru64 digits) = toField digits
-- to here

-- A fixed ID, as text and as the integer in it
givenId :: Scru64
givenId = Scru64 "0u2r85hm2pt3"

number :: Int64
number = 109964681944955175

-- IDs in the order of the server, which must be the order of strings
ordered :: [Scru64]
ordered =
  [ Scru64 "000000000000", Scru64 "0000000000zz", Scru64 "00000000a000", givenId
  , Scru64 "9zzzzzzzzzzz", Scru64 "a00000000000", Scru64 "zzzzzzzzzzzz" ]

is :: (Eq a, Show a) => a -> a -> String -> IO ()
is got expected name
  | got == expected = putStrLn ("ok - " ++ name)
  | otherwise = putStrLn ("not ok - " ++ name ++ "\n#        got: " ++ show got ++ "\n#   expected: " ++ show expected)

-- psql's output, a string for each line
psql :: String -> IO [String]
psql sql = do
  program <- getEnv "PSQL"
  lines <$> readProcess program ["-XqAt", "-v", "ON_ERROR_STOP=1", "-c", sql] ""

digitsOf :: Scru64 -> String
digitsOf (Scru64 digits) = unpack digits

-- The SQLSTATE of a failing query
failure :: IO [Only Scru64] -> IO ByteString
failure run = either sqlState (const "none") <$> try run

main :: IO ()
main = do
  conn <- connectPostgreSQL ""
  let ids :: ToRow q => Query -> q -> IO [Scru64]
      ids sql params = map fromOnly <$> query conn sql params

  first <- ids "INSERT INTO event (what) VALUES (?) RETURNING id" (Only ("first" :: Text))
  stored <- psql "SELECT id FROM event"
  is (map digitsOf first) stored "DEFAULT gives an ID"
  second <- ids "INSERT INTO event (what) VALUES (?) RETURNING id" (Only ("second" :: Text))
  found <- ids "SELECT id FROM event WHERE id = ?" first
  is found first "parameter in a comparison"
  after <- ids "SELECT id FROM event WHERE id > ?" first
  is after second "parameter in a range"
  given <- ids "INSERT INTO event (id, what) VALUES (?, 'given') RETURNING id" (Only (toUpper "0u2r85hm2pt3"))
  is given [givenId] "parameter in an INSERT"
  text <- try (query conn "SELECT id FROM event WHERE id = ?" first) :: IO (Either ResultError [Only Text])
  is (either (const True) (const False) text) True "it is no text"
  asText <- query conn "SELECT id::text FROM event WHERE id = ?" first
  is (map (Scru64 . fromOnly) asText) first "but with a cast"
  null' <- query conn "SELECT ?::scru64" (Only (Nothing :: Maybe Scru64))
  is null' [Only (Nothing :: Maybe Scru64)] "NULL"
  noNull <- try (ids "SELECT NULL::scru64" ())
  is (either (const True :: ResultError -> Bool) (const False) noNull) True "and is no ID"
  other <- try (ids "SELECT text '0u2r85hm2pt3'" ())
  is (either (const True :: ResultError -> Bool) (const False) other) True "nor is text"
  bad <- failure (query conn "SELECT id FROM event WHERE id = ?" (Only (Scru64 "no ID")))
  is bad "22P02" "bad text"
  cast <- ids "SELECT ?::bigint::scru64" (Only number)
  is cast [givenId] "a number, with a cast"

  now <- getCurrentTime
  let since = Only (addUTCTime (-3600) now)
  uncast <- failure (query conn "SELECT id FROM event WHERE id >= ?" since)
  is uncast "22P02" "a time needs a cast"
  recent <- ids "SELECT id FROM event WHERE id >= ?::timestamptz ORDER BY id" since
  is recent (first ++ second) "and has one"

  some <- ids "SELECT id FROM event WHERE id IN ? ORDER BY id" (Only (In (first ++ [givenId])))
  is some (givenId : first) "IN"
  noCast <- failure (query conn "SELECT id FROM event WHERE id = ANY(?)" (Only (PGArray first)))
  is noCast "42883" "= ANY(parameter) needs a cast"
  anyOf <- ids "SELECT id FROM event WHERE id = ANY(?::scru64[]) ORDER BY id" (Only (PGArray (first ++ [givenId])))
  is anyOf (givenId : first) "and has one"
  none <- ids "SELECT id FROM event WHERE id = ANY(?::scru64[])" (Only (PGArray ([] :: [Scru64])))
  is none [] "also an empty one"
  related <- query conn "UPDATE event SET related = ? WHERE id = ? RETURNING related"
    (PGArray [Just (head first), Nothing], givenId)
  is (map (fromPGArray . fromOnly) related) [[Just (head first), Nothing]] "an array"

  -- Order
  forM_ (filter (/= givenId) (reverse ordered)) $ \id' ->
    execute conn "INSERT INTO event (id, what) VALUES (?, 'ordered')" (Only id')
  everything <- ids "SELECT id FROM event ORDER BY id" ()
  is (sort everything) everything "the server's order is that of the strings"
  is (filter (`elem` ordered) everything) ordered "and the one expected"
  putStrLn "done"
